# The three functions that every CMakeLists.txt below the root is made of.

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

# plumbline_test(NAME SOURCES a_test.cc [DEPS dep...] [LABELS label...] [ENVIRONMENT A=b...] [TIMEOUT seconds])
# One GoogleTest program, one ctest entry a test case, found when ctest runs (not while building). Label: unit.
function(plumbline_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE plumbline_flags ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    PLUMBLINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" PLUMBLINE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${name}."
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()
