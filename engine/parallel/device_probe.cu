// The probe of a build with CUDA. Host code only.
#include <cuda_runtime.h>
#ifdef PLUMBLINE_HAVE_NCCL
#include <nccl.h>
#endif

#include <cstdio>

#include "engine/parallel/device_probe.h"

namespace plumbline {
namespace {

// CUDA codes its versions as 1000 * major + 10 * minor.
std::string CudaVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

#ifdef PLUMBLINE_HAVE_NCCL
// NCCL codes its versions as 10000 * major + 100 * minor + patch since 2.9; older ones are not supported.
std::string NcclVersion(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}
#endif

// "GPU-" and the 16 bytes in hexadecimal, with dashes after bytes 4, 6, 8 and 10.
std::string FormatUuid(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += byte;
  }
  return text;
}

}  // namespace

DeviceReport ProbeDevices() {
  DeviceReport report;
  report.built_with_cuda = true;
  report.cuda_version = CudaVersion(CUDART_VERSION);
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0) report.driver_version = CudaVersion(driver);
#ifdef PLUMBLINE_HAVE_NCCL
  int nccl = 0;
  if (ncclGetVersion(&nccl) == ncclSuccess) report.nccl_version = NcclVersion(nccl);
#endif

  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    report.reason = report.driver_version ? "no CUDA device: " + std::string(cudaGetErrorString(status))
                                          : "no CUDA device: no NVIDIA driver is loaded (" +
                                                std::string(cudaGetErrorString(status)) + ")";
    return report;
  }
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, index);
    if (error != cudaSuccess) {
      // One unusable device makes the machine unusable for a suite that counts on the number of devices.
      report.devices.clear();
      report.reason = "device " + std::to_string(index) + " does not answer: " + cudaGetErrorString(error);
      return report;
    }
    Device device;
    device.index = index;
    device.name = properties.name;
    device.uuid = FormatUuid(properties.uuid);
    device.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    device.compute_capability = std::to_string(properties.major) + "." + std::to_string(properties.minor);
    report.devices.push_back(device);
  }
  return report;
}

}  // namespace plumbline
