#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plumbline {

struct Device {
  std::int64_t index = 0;  // as CUDA counts them under the present CUDA_VISIBLE_DEVICES
  std::string name;
  std::string uuid;  // "GPU-..." as nvidia-smi prints it
  std::int64_t memory_bytes = 0;
  std::string compute_capability;  // "9.0"
};

// What the machine can offer a GPU engine. Without devices `reason` says why, in a sentence that a skipped
// test can print; with devices it is empty.
struct DeviceReport {
  std::vector<Device> devices;
  std::string reason;
  bool built_with_cuda = false;
  std::optional<std::string> cuda_version;  // of the runtime that the probe was built with
  std::optional<std::string>
      driver_version;  // the newest CUDA that the installed driver serves; none without one
  std::optional<std::string> nccl_version;  // none when built without NCCL
};

// Looks at the machine. Defined in device_probe.cu, in device_probe.cc where the build has no CUDA. The
// headers that nvcc compiles hold no JSON library.
DeviceReport ProbeDevices();

}  // namespace plumbline
