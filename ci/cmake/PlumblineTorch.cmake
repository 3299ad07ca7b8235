# libtorch, and the oneDNN that the kernels are measured beside, as plain imported targets. Gives
#   PLUMBLINE_HAVE_TORCH      whether the torch engine is built
#   plumbline::torch_library  headers and libtorch_cpu, libc10
#   plumbline::onednn         libdnnl, where it was found
# libtorch's own CMake package is not used: it asks for a CUDA toolkit where the library was built with one, and it
# adds compiler flags to everything. CMAKE_PREFIX_PATH chooses another libtorch (a release archive, or the folder
# site-packages/torch of the PyPI package) before Debian's.
set(PLUMBLINE_HAVE_TORCH FALSE)
if(PLUMBLINE_TORCH STREQUAL "OFF")
  return()
endif()

find_path(PLUMBLINE_TORCH_INCLUDE torch/script.h DOC "Folder that holds torch/script.h")
get_filename_component(torch_prefix "${PLUMBLINE_TORCH_INCLUDE}" DIRECTORY)
# The library beside the header comes first: header and library of two versions must never be mixed.
find_library(PLUMBLINE_TORCH_CPU torch_cpu HINTS ${torch_prefix}/lib DOC "libtorch_cpu")
find_library(PLUMBLINE_TORCH_C10 c10 HINTS ${torch_prefix}/lib DOC "libc10")

set(torch_missing)
foreach(part IN ITEMS TORCH_INCLUDE TORCH_CPU TORCH_C10)
  if(NOT PLUMBLINE_${part})
    list(APPEND torch_missing PLUMBLINE_${part})
  endif()
endforeach()

if(torch_missing)
  if(PLUMBLINE_TORCH STREQUAL "ON")
    message(FATAL_ERROR "PLUMBLINE_TORCH=ON, but not found: ${torch_missing}. On Debian: apt-get install libtorch-dev "
      "libopenblas0-openmp; elsewhere: -DCMAKE_PREFIX_PATH=<folder of libtorch>")
  endif()
  message(STATUS "Plumbline: no torch engine (not found: ${torch_missing})")
  return()
endif()

set(PLUMBLINE_TORCH_VERSION "unknown")
file(GLOB version_headers ${PLUMBLINE_TORCH_INCLUDE}/torch/csrc/api/include/torch/version.h
  ${PLUMBLINE_TORCH_INCLUDE}/torch/headeronly/version.h)
foreach(header IN LISTS version_headers)
  file(STRINGS ${header} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
  if(lines MATCHES "MAJOR ([0-9]+).*MINOR ([0-9]+)")
    set(PLUMBLINE_TORCH_VERSION ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
  endif()
endforeach()

set(PLUMBLINE_HAVE_TORCH TRUE)
add_library(plumbline_torch_library INTERFACE)
add_library(plumbline::torch_library ALIAS plumbline_torch_library)
# SYSTEM: our warnings are errors, torch's headers have many.
target_include_directories(plumbline_torch_library SYSTEM INTERFACE
  ${PLUMBLINE_TORCH_INCLUDE} ${PLUMBLINE_TORCH_INCLUDE}/torch/csrc/api/include)
target_link_libraries(plumbline_torch_library INTERFACE ${PLUMBLINE_TORCH_CPU} ${PLUMBLINE_TORCH_C10})

# The header beside the library: the PyPI package brings headers of an oneDNN that it does not export.
find_library(PLUMBLINE_DNNL dnnl DOC "libdnnl")
find_path(PLUMBLINE_DNNL_INCLUDE dnnl.hpp PATHS /usr/include /usr/local/include NO_DEFAULT_PATH
  DOC "Folder that holds oneDNN's dnnl.hpp")
if(PLUMBLINE_DNNL AND PLUMBLINE_DNNL_INCLUDE)
  add_library(plumbline_onednn INTERFACE)
  add_library(plumbline::onednn ALIAS plumbline_onednn)
  target_include_directories(plumbline_onednn SYSTEM INTERFACE ${PLUMBLINE_DNNL_INCLUDE})
  target_link_libraries(plumbline_onednn INTERFACE ${PLUMBLINE_DNNL})
endif()
message(STATUS "Plumbline: torch engine with libtorch ${PLUMBLINE_TORCH_VERSION} (${PLUMBLINE_TORCH_CPU})")
