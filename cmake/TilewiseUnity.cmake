# Several sources of a folder as one unit of compilation: most of a small file's time goes into headers and templates that its
# neighbours need as well. Files with flags of their own, such as those of instruction sets, stay alone (CMake sees to that).
# A build with TILEWISE_UNITY=OFF shows what a file forgot to include; one of CI's does that.

set(TILEWISE_UNIT_FILES 8 CACHE STRING "Sources in one unit; fewer take less memory, and less time to compile again")

function(tilewise_unity target)
  if(NOT TILEWISE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  list(FILTER sources EXCLUDE REGEX "/main[.]cpp$")  # a test links the rest of a program
  foreach(source IN LISTS sources)
    get_filename_component(folder "${source}" DIRECTORY)
    string(REPLACE "${CMAKE_SOURCE_DIR}/" "" folder "${target}/${folder}")
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    list(LENGTH in_${folder} before)
    list(APPEND in_${folder} "${source}")
    math(EXPR unit "${before} / ${TILEWISE_UNIT_FILES}")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${unit}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
