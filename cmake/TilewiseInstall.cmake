# Two components: `package`, the Python package's part (worker and BLAS), where its backend builds; and `library`, the C++
# library with its CMake package.
include(GNUInstallDirs)

if(SKBUILD AND TILEWISE_MPI_KIND STREQUAL "simulated")
  message(FATAL_ERROR "smpicxx simulates ranks, and cannot build the package; make simulator builds what --simulate needs")
endif()
if(SKBUILD)
  # Beside the Python package: .../lib/python3.x/site-packages/tilewise/{bin,lib}. The wheel's MPI lies in the
  # environment's lib folder, four levels up (five and down again where site-packages is under lib64).
  if(TILEWISE_MPI_KIND STREQUAL "wheel")
    set(mpi_rpath "$ORIGIN/../../../..;$ORIGIN/../../../../../lib")
  else()
    set(mpi_rpath "${mpi_library_dirs}")
  endif()
  set_target_properties(tilewise-worker PROPERTIES INSTALL_RPATH "$ORIGIN/../lib;${mpi_rpath}")
  install(TARGETS tilewise-worker tilewise-start tilewise-lines DESTINATION tilewise/bin COMPONENT package)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/build.json" DESTINATION tilewise/bin COMPONENT package)
  if(TILEWISE_OPENBLAS)
    install(FILES "${TILEWISE_OPENBLAS}" DESTINATION tilewise/lib COMPONENT package)
  endif()
  configure_file(cmake/modulefile.in "${CMAKE_CURRENT_BINARY_DIR}/modulefile" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/modulefile" RENAME "${PROJECT_VERSION}"
          DESTINATION "${SKBUILD_DATA_DIR}/share/modulefiles/tilewise" COMPONENT package)
  foreach(folder share/man share/tilewise/man)  # man looks for it near each folder on PATH: the environment's, the module file's
    install(DIRECTORY docs/man/ DESTINATION "${SKBUILD_DATA_DIR}/${folder}/man1" COMPONENT package FILES_MATCHING PATTERN "*.1")
  endforeach()
  install(PROGRAMS cmake/command.sh RENAME tilewise DESTINATION "${SKBUILD_DATA_DIR}/share/tilewise/bin" COMPONENT package)
endif()

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tilewise")
install(TARGETS tilewise tilewise_mpi tilewise_blas EXPORT tilewise-targets COMPONENT library)
# What the umbrella header includes; all others are private, and so may change.
foreach(header tilewise.hpp library/files.hpp library/matrix.hpp library/operations.hpp library/options.hpp
               base/dtype.hpp base/error.hpp base/outcome.hpp mpi/mpi.hpp mpi/exchange/kinds.hpp)
  get_filename_component(folder "tilewise/${header}" DIRECTORY)
  install(FILES "cpp/tilewise/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}" COMPONENT library)
endforeach()
install(EXPORT tilewise-targets NAMESPACE tilewise:: DESTINATION "${package_dir}" COMPONENT library)
if(TILEWISE_OPENBLAS)
  install(FILES "${TILEWISE_OPENBLAS}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library)
  get_filename_component(TILEWISE_OPENBLAS_FILE "${TILEWISE_OPENBLAS}" NAME)
endif()
configure_package_config_file(cmake/tilewise-config.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/tilewise-config.cmake"
                              INSTALL_DESTINATION "${package_dir}" PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/tilewise-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tilewise-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/tilewise-config-version.cmake" DESTINATION "${package_dir}" COMPONENT library)
