# Defines the target tilewise_mpi: the mpich wheel's standard ABI by default, the site's MPI by option.
#
# CMake's own FindMPI drops the definition MPI_ABI that the wheel's wrapper sets, and takes over the wrapper's rpath
# into a temporary build folder; so the wrapper is asked here, in the one form that all of them understand: -show.
#
# SimGrid's SMPI (smpicxx) simulates a cluster: its ranks are threads of one process that loads the worker as a library.
get_filename_component(mpi_wrapper_name "${TILEWISE_MPI_COMPILER}" NAME)
if(mpi_wrapper_name STREQUAL "smpicxx")
  set(TILEWISE_MPI_KIND "simulated")
  set(mpi_wrapper "${TILEWISE_MPI_COMPILER}")
elseif(TILEWISE_MPI_COMPILER)
  set(TILEWISE_MPI_KIND "site")
  set(mpi_wrapper "${TILEWISE_MPI_COMPILER}")
else()
  set(TILEWISE_MPI_KIND "wheel")
  cmake_path(GET Python_EXECUTABLE PARENT_PATH python_bin)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "import sysconfig; print(sysconfig.get_path('scripts'))"
                  OUTPUT_VARIABLE python_scripts OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  # An isolated build has the wheel in an overlay whose scripts folder leads PATH, hence the last resort.
  find_program(mpi_wrapper NAMES mpicxx_abi HINTS "${TILEWISE_PACKAGES}/bin" "${python_scripts}" "${python_bin}" NO_CACHE REQUIRED)
endif()

execute_process(COMMAND "${mpi_wrapper}" -show OUTPUT_VARIABLE mpi_line OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(mpi_words UNIX_COMMAND "${mpi_line}")

add_library(tilewise_mpi INTERFACE)
set(mpi_library_dirs "")
foreach(word IN LISTS mpi_words)
  if(word MATCHES "^-I(.+)")
    target_include_directories(tilewise_mpi SYSTEM INTERFACE "$<BUILD_INTERFACE:${CMAKE_MATCH_1}>")
    list(APPEND mpi_include_dirs "${CMAKE_MATCH_1}")
  elseif(word MATCHES "^-D(.+)")
    target_compile_definitions(tilewise_mpi INTERFACE "${CMAKE_MATCH_1}")
  elseif(word MATCHES "^-L(.+)")
    list(APPEND mpi_library_dirs "${CMAKE_MATCH_1}")
  elseif(word MATCHES "^-l(.+)" AND NOT word MATCHES "mpi_?cxx|mpichcxx")
    string(SUBSTRING "${word}" 2 -1 mpi_library_name)
    list(APPEND mpi_library_names "${mpi_library_name}")
  endif()
endforeach()
foreach(name IN LISTS mpi_library_names)
  find_library(mpi_library_${name} NAMES "${name}" HINTS ${mpi_library_dirs} NO_CACHE)
  if(NOT mpi_library_${name} AND TILEWISE_MPI_KIND STREQUAL "wheel")
    # The wheel has no symbolic links: its development name may be a linker script beside the real file.
    find_file(mpi_library_${name} NAMES "lib${name}.so.1" HINTS ${mpi_library_dirs} NO_CACHE REQUIRED)
  endif()
  target_link_libraries(tilewise_mpi INTERFACE "${mpi_library_${name}}")
endforeach()
target_compile_definitions(tilewise_mpi INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)

cmake_path(GET mpi_wrapper PARENT_PATH mpi_bin)
get_filename_component(mpi_wrapper_name "${mpi_wrapper}" NAME)
string(REGEX REPLACE "^mpi(cxx|c\\+\\+|CC|cc)" "mpiexec" mpi_launcher_name "${mpi_wrapper_name}")
find_program(TILEWISE_MPIEXEC_FOUND NAMES "${mpi_launcher_name}" mpiexec HINTS "${mpi_bin}" NO_DEFAULT_PATH NO_CACHE)
if(NOT TILEWISE_MPIEXEC_FOUND)
  set(TILEWISE_MPIEXEC_FOUND "")
endif()
set(TILEWISE_MPI_WRAPPER "${mpi_wrapper}")
message(STATUS "MPI: ${TILEWISE_MPI_KIND}, ${mpi_wrapper}, libraries ${mpi_library_names}, launcher ${TILEWISE_MPIEXEC_FOUND}")
