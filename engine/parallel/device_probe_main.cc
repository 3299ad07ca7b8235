// plumb_device_probe: prints the DeviceReport of this machine as JSON. Exit codes: 0 with at least one
// device, 77 without (the reason stands in the JSON), 1 for arguments, of which there are none.
#include <cstdio>

#include "engine/base/exit_code.h"
#include "engine/parallel/device_report.h"

int main(int argc, char**) {
  using plumbline::ExitCode;
  if (argc > 1) {
    std::fprintf(stderr,
                 "plumb_device_probe: takes no arguments; prints the CUDA devices of this machine as JSON\n");
    return static_cast<int>(ExitCode::kBadInput);
  }
  const plumbline::DeviceReport report = plumbline::ProbeDevices();
  std::fputs(plumbline::PrintJson(ToJson(report)).c_str(), stdout);
  return static_cast<int>(report.devices.empty() ? ExitCode::kSkipped : ExitCode::kPass);
}
