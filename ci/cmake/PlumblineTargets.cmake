# The functions that every CMakeLists.txt below the root is made of.

# plumbline_library(NAME SOURCES a.cc b.cc [PUBLIC dep...] [PRIVATE dep...])
# One library a folder: target plumbline_NAME, alias plumbline::NAME. Includes are written from the project's root.
function(plumbline_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(ARG_SOURCES)
    add_library(plumbline_${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(plumbline_${name} PRIVATE $<BUILD_INTERFACE:plumbline_flags> ${ARG_PRIVATE})
  else()
    add_library(plumbline_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(plumbline::${name} ALIAS plumbline_${name})
  target_include_directories(plumbline_${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(plumbline_${name} ${scope} ${ARG_PUBLIC})
endfunction()

# How test sources are optimised. Instrumented, a file full of assertions compiles three times as fast without; the code
# under test is not concerned.
set(plumbline_test_optimisation $<$<CONFIG:Release>:-O1> $<$<CONFIG:RelWithDebInfo>:-O0>)

# plumbline_test(NAME SOURCES a_test.cc [DEPS dep...] [LABELS label...] [ENVIRONMENT A=b...] [TIMEOUT seconds] [TIMING])
# One GoogleTest program, one ctest entry a test case, found when ctest runs (not while building). Label: unit.
# TIMING: the tests judge time; they run alone (RUN_SERIAL), and never under a sanitizer (label timing).
function(plumbline_test name)
  cmake_parse_arguments(ARG "TIMING" "TIMEOUT" "SOURCES;DEPS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(ARG_TIMING)
    list(APPEND ARG_LABELS timing)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE plumbline_flags ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${plumbline_test_optimisation})
  target_compile_definitions(${name} PRIVATE
    PLUMBLINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" PLUMBLINE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}.")
  # Not by gtest_discover_tests(PROPERTIES): that takes lists (two labels) apart and keeps the first element.
  file(CONFIGURE OUTPUT ${name}_properties.cmake @ONLY CONTENT [=[
if(@name@_TESTS)
  set_tests_properties(${@name@_TESTS} PROPERTIES LABELS "@ARG_LABELS@" TIMEOUT @ARG_TIMEOUT@
    ENVIRONMENT "@ARG_ENVIRONMENT@" RUN_SERIAL @ARG_TIMING@)
endif()
]=])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake)
endfunction()

# plumbline_suite(LABEL EXAMPLES a/b/c... [LABELS label...] [TIMEOUT seconds] [GPUS n])
# One ctest entry for each example of plumb_suites, named by its path with dots. Exit code 77 is a skip. TIMEOUT must be
# longer than the example's own, so that the example reports first. LABELS timing: runs alone. GPUS: that many devices
# of the resource file that `plumb doctor --ctest-resources` writes, and runs alone.
function(plumbline_suite label)
  cmake_parse_arguments(ARG "" "TIMEOUT;GPUS" "EXAMPLES;LABELS" ${ARGN})
  foreach(example IN LISTS ARG_EXAMPLES)
    set_property(GLOBAL APPEND PROPERTY PLUMBLINE_SUITE_EXAMPLES ${example})
    string(REPLACE "/" "." test ${example})
    add_test(NAME ${test}
      COMMAND plumb_suites --benchmark_filter=^${example}/ --output-dir=${PROJECT_BINARY_DIR}/results)
    set_tests_properties(${test} PROPERTIES LABELS "${label};${ARG_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT ${ARG_TIMEOUT})
    if(ARG_GPUS)
      set_tests_properties(${test} PROPERTIES RESOURCE_GROUPS "gpus:${ARG_GPUS}" RUN_SERIAL ON)
    elseif("timing" IN_LIST ARG_LABELS)
      set_tests_properties(${test} PROPERTIES RUN_SERIAL ON)
    endif()
  endforeach()
endfunction()

set(PLUMBLINE_FUZZ_RUNS 2000 CACHE STRING "Mutations that the ctest entry of each fuzz target tries")
set(PLUMBLINE_FUZZ_SECONDS 10 CACHE STRING "Longest time of such an entry")

# plumbline_fuzz(NAME [SOURCES a.cc...] [DEPS dep...])
# A fuzz target of tests/fuzz: SOURCES (default NAME_fuzz.cc) defines LLVMFuzzerTestOneInput, corpus/NAME holds the
# seeds. libFuzzer drives it where the compiler has a usable one, tests/fuzz/driver.cc elsewhere; both take the same
# flags. ctest entry fuzz.NAME, label fuzz.
function(plumbline_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES ${name}_fuzz.cc)
  endif()
  add_executable(${name}_fuzz ${ARG_SOURCES})
  target_link_libraries(${name}_fuzz PRIVATE plumbline_flags ${ARG_DEPS})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 15)
    target_compile_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  else()
    target_link_libraries(${name}_fuzz PRIVATE plumbline_fuzz_driver)
  endif()
  # A copy of the seeds: libFuzzer adds what it finds to the folder that it is given.
  file(COPY ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name} DESTINATION ${CMAKE_CURRENT_BINARY_DIR}/corpus)
  add_test(NAME fuzz.${name}
    COMMAND ${name}_fuzz -runs=${PLUMBLINE_FUZZ_RUNS} -max_total_time=${PLUMBLINE_FUZZ_SECONDS} -timeout=10 -seed=1
      -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}. ${CMAKE_CURRENT_BINARY_DIR}/corpus/${name})
  math(EXPR timeout "${PLUMBLINE_FUZZ_SECONDS} + 60")
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${timeout})
endfunction()
