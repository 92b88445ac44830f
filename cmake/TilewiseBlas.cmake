# Defines the target tilewise_blas: OpenBLAS from the scipy-openblas32 wheel by default, the site's by option.
set(TILEWISE_BLAS "wheel" CACHE STRING "wheel: OpenBLAS of the scipy-openblas32 package; site: what FindBLAS finds")

add_library(tilewise_blas INTERFACE)
if(TILEWISE_BLAS STREQUAL "wheel")
  execute_process(COMMAND "${Python_EXECUTABLE}" -c
                  "import scipy_openblas32 as o; print(o.get_lib_dir(), o.get_library(fullname=True), sep='/')"
                  OUTPUT_VARIABLE TILEWISE_OPENBLAS OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  add_library(tilewise_openblas SHARED IMPORTED)
  set_target_properties(tilewise_openblas PROPERTIES IMPORTED_LOCATION "${TILEWISE_OPENBLAS}")
  target_link_libraries(tilewise_blas INTERFACE $<BUILD_INTERFACE:tilewise_openblas>)
  target_compile_definitions(tilewise_blas INTERFACE TILEWISE_BLAS_PREFIX=scipy_)
else()
  find_package(BLAS REQUIRED)
  target_link_libraries(tilewise_blas INTERFACE ${BLAS_LIBRARIES})
  target_compile_definitions(tilewise_blas INTERFACE TILEWISE_BLAS_PREFIX=)
  set(TILEWISE_OPENBLAS "")
endif()
