# Defines tilewise_json (and, for tests, tilewise_doctest): header-only packages, the system's or the pgm-build-deps wheel's.
execute_process(COMMAND "${Python_EXECUTABLE}" -c
                "import importlib.util as u; s = u.find_spec('pgm_build_deps'); print(list(s.submodule_search_locations)[0] if s else '')"
                OUTPUT_VARIABLE headers_wheel OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

function(tilewise_header target header package)
  find_path(${target}_dir NAMES "${header}" HINTS "${headers_wheel}/${package}/include" NO_CACHE REQUIRED)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE "${${target}_dir}")
endfunction()

tilewise_header(tilewise_json nlohmann/json.hpp nlohmann_json)
if(TILEWISE_TESTS)
  tilewise_header(tilewise_doctest doctest/doctest.h doctest)
endif()
