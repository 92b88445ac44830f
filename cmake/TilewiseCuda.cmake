# Defines the target tilewise_cuda, buffers on graphics processors: where CUDA's compiler is found; left out silently otherwise.
#
# The runtime is linked statically, and looks for the driver when it is first used: what is built here runs on machines without one.
set(TILEWISE_CUDA "AUTO" CACHE STRING "AUTO: where nvcc works; ON: it must be there; OFF: never")
set(TILEWISE_CUDA_VERSION "")
if(NOT TILEWISE_CUDA)
  return()
endif()

include(CheckLanguage)
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(tilewise_nvcc NAMES nvcc HINTS "$ENV{CUDA_HOME}/bin" "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin /opt/cuda/bin NO_CACHE)
  if(tilewise_nvcc)
    set(ENV{CUDACXX} "${tilewise_nvcc}")
  endif()
endif()
check_language(CUDA)  # compiles something, so that a broken nvcc does not break the build
if(NOT CMAKE_CUDA_COMPILER)
  if(NOT TILEWISE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TILEWISE_CUDA is ${TILEWISE_CUDA}, but no working nvcc was found: set CUDACXX, or TILEWISE_CUDA=OFF")
  endif()
  return()
endif()

# Code for the most usual processors; the driver compiles the oldest one's for all others when the program runs: 7.0's, or, where
# nvcc no longer knows that, 7.5's, which is in the list for nothing else.
execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-arch OUTPUT_VARIABLE known_architectures ERROR_QUIET)
if(NOT CMAKE_CUDA_ARCHITECTURES)
  foreach(architecture 70 75 80 90)
    if(known_architectures MATCHES "compute_${architecture}[^0-9]")
      list(APPEND CMAKE_CUDA_ARCHITECTURES "${architecture}")
    endif()
  endforeach()
  if(CMAKE_CUDA_ARCHITECTURES)  # an nvcc that cannot list them takes its own default
    list(TRANSFORM CMAKE_CUDA_ARCHITECTURES APPEND "-virtual" AT 0)
    list(FILTER CMAKE_CUDA_ARCHITECTURES EXCLUDE REGEX "^75$")
    list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "^([0-9]+)$" "\\1-real")
  endif()
endif()
enable_language(CUDA)
find_package(CUDAToolkit QUIET)
if(NOT TARGET CUDA::cudart_static)
  if(NOT TILEWISE_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TILEWISE_CUDA is ${TILEWISE_CUDA}, but nvcc's static runtime (cudart_static) was not found")
  endif()
  return()
endif()
set(TILEWISE_CUDA_VERSION "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")

# A library of its own, since nvcc does not take the compiler's warnings as they are.
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS cpp/tilewise/*.cu)
add_library(tilewise_cuda OBJECT ${cuda_sources})
set_target_properties(tilewise_cuda PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON CUDA_RUNTIME_LIBRARY Static)
target_include_directories(tilewise_cuda PRIVATE cpp)
target_compile_definitions(tilewise_cuda PRIVATE TILEWISE_CUDA TILEWISE_CUDA_VERSION="${TILEWISE_CUDA_VERSION}")
if(TILEWISE_STRICT)
  target_compile_options(tilewise_cuda PRIVATE "-Xcompiler=-Wall,-Wextra,-Wshadow" -Werror=all-warnings)
endif()
message(STATUS "CUDA: ${TILEWISE_CUDA_VERSION}, ${CMAKE_CUDA_COMPILER}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
