# CUDA and NCCL for the device probe. Gives
#   PLUMBLINE_HAVE_CUDA   whether nvcc was found and the language CUDA is enabled
#   plumbline::cuda       the CUDA runtime (linked statically: nothing that links it needs libcuda to start)
#   plumbline::nccl       NCCL, where it was found
# Only host code is compiled with nvcc here, so that the architectures chosen are of no consequence.
set(PLUMBLINE_HAVE_CUDA FALSE)
if(PLUMBLINE_CUDA STREQUAL "OFF")
  return()
endif()

find_program(PLUMBLINE_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin PATHS /usr/local/cuda/bin
  DOC "The CUDA compiler")
if(NOT PLUMBLINE_NVCC)
  if(PLUMBLINE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "PLUMBLINE_CUDA=ON, but nvcc is neither in PATH nor in /usr/local/cuda/bin; set CUDA_HOME")
  endif()
  message(STATUS "Plumbline: no CUDA device probe (no nvcc)")
  return()
endif()

set(CMAKE_CUDA_COMPILER ${PLUMBLINE_NVCC})
set(CMAKE_CUDA_ARCHITECTURES OFF)
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)  # CMake 3.25 knows no C++20 mode of nvcc 13
find_package(CUDAToolkit REQUIRED)
find_path(PLUMBLINE_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} DOC "Folder that holds nccl.h")
find_library(PLUMBLINE_NCCL nccl HINTS ${CUDAToolkit_LIBRARY_DIR} DOC "libnccl")

set(PLUMBLINE_HAVE_CUDA TRUE)
add_library(plumbline_cuda INTERFACE)
add_library(plumbline::cuda ALIAS plumbline_cuda)
target_link_libraries(plumbline_cuda INTERFACE CUDA::cudart_static)

if(PLUMBLINE_NCCL_INCLUDE AND PLUMBLINE_NCCL)
  add_library(plumbline_nccl INTERFACE)
  add_library(plumbline::nccl ALIAS plumbline_nccl)
  target_include_directories(plumbline_nccl SYSTEM INTERFACE ${PLUMBLINE_NCCL_INCLUDE})
  target_link_libraries(plumbline_nccl INTERFACE ${PLUMBLINE_NCCL})
  message(STATUS "Plumbline: device probe with CUDA ${CUDAToolkit_VERSION} and NCCL (${PLUMBLINE_NCCL})")
elseif(PLUMBLINE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "PLUMBLINE_CUDA=ON, but nccl.h or libnccl was not found; set CMAKE_PREFIX_PATH to NCCL's folder")
else()
  message(STATUS "Plumbline: device probe with CUDA ${CUDAToolkit_VERSION}, without NCCL (not found)")
endif()
