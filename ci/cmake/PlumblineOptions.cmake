# Options, and the flags that every target of the project is compiled with (interface target plumbline_flags).
option(PLUMBLINE_BUILD_TESTS "Build the tests of the suite itself" ON)
option(PLUMBLINE_WARNINGS_AS_ERRORS "Treat compiler warnings as errors" OFF)
set(PLUMBLINE_TORCH "AUTO" CACHE STRING "Build the torch engine: AUTO (where libtorch is found), ON or OFF")
set_property(CACHE PLUMBLINE_TORCH PROPERTY STRINGS AUTO ON OFF)
set(PLUMBLINE_CUDA "AUTO" CACHE STRING "Build the CUDA and NCCL device probe: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE PLUMBLINE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(PLUMBLINE_SANITIZER "" CACHE STRING "address;undefined or thread: passed to -fsanitize")
option(PLUMBLINE_COVERAGE "Instrument for gcov" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# Installed plug-ins and probes find a libtorch or an NCCL that lies outside the system folders.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(plumbline_flags INTERFACE)
# No contraction into FMA: simulated times are compared to the byte, on every machine.
target_compile_options(plumbline_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -ffp-contract=off)
# GCC 12 sees, only when it optimises, an absent std::optional's value being read and overlapping copies in std::string
# (its bugs 105562 and 105651, both in the library's own code).
target_compile_options(plumbline_flags INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<NOT:$<CONFIG:Debug>>>:-Wno-maybe-uninitialized;-Wno-restrict>)
if(PLUMBLINE_WARNINGS_AS_ERRORS)
  target_compile_options(plumbline_flags INTERFACE -Werror)
endif()
if(PLUMBLINE_SANITIZER)
  list(JOIN PLUMBLINE_SANITIZER "," sanitizers)
  target_compile_options(plumbline_flags INTERFACE -fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(plumbline_flags INTERFACE -fsanitize=${sanitizers})
endif()
if(PLUMBLINE_COVERAGE)
  target_compile_options(plumbline_flags INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(plumbline_flags INTERFACE --coverage)
endif()
