// The probe of a build without CUDA.
#include "engine/parallel/device_probe.h"

namespace plumbline {

DeviceReport ProbeDevices() {
  DeviceReport report;
  report.reason = "this build has no CUDA: configure with --preset gpu where nvcc is installed";
  return report;
}

}  // namespace plumbline
