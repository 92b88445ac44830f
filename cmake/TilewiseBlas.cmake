# Defines the target tilewise_blas: OpenBLAS from the scipy-openblas32 wheel by default, the site's by option.
set(TILEWISE_BLAS "wheel" CACHE STRING "wheel: OpenBLAS of the scipy-openblas32 package; site: what FindBLAS finds")

add_library(tilewise_blas INTERFACE)
if(TILEWISE_BLAS STREQUAL "wheel")
  # The package is found, not imported: that would load the library, which may be for another machine.
  execute_process(COMMAND "${Python_EXECUTABLE}" -c
                  "import importlib.util as u; s = u.find_spec('scipy_openblas32'); print(list(s.submodule_search_locations)[0] if s else '')"
                  OUTPUT_VARIABLE blas_wheel OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(TILEWISE_PACKAGES)
    set(blas_wheel "${TILEWISE_PACKAGES}/scipy_openblas32")
  endif()
  find_library(TILEWISE_OPENBLAS NAMES scipy_openblas PATHS "${blas_wheel}/lib" NO_DEFAULT_PATH NO_CACHE REQUIRED)
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
