#include "engine/parallel/device_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <array>
#include <cstdio>

#include "engine/base/error.h"

namespace plumbline {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

DeviceReport Parse(const std::string& text) {
  const Json json = ParseJson(text, "probe.json");
  return DeviceReportFromJson(JsonView(json, "probe.json"));
}

TEST(DeviceReport, ComesBackFromItsJson) {
  DeviceReport report;
  report.built_with_cuda = true;
  report.cuda_version = "13.0";
  report.nccl_version = "2.28.9";
  report.devices.push_back({.index = 1,
                            .name = "NVIDIA H200",
                            .uuid = "GPU-0",
                            .memory_bytes = 150'000'000'000,
                            .compute_capability = "9.0"});
  const DeviceReport back = Parse(PrintJson(ToJson(report)));
  EXPECT_TRUE(back.built_with_cuda);
  EXPECT_EQ(back.cuda_version, "13.0");
  EXPECT_EQ(back.driver_version, std::nullopt);
  EXPECT_EQ(back.nccl_version, "2.28.9");
  ASSERT_EQ(back.devices.size(), 1u);
  EXPECT_EQ(back.devices[0].index, 1);
  EXPECT_EQ(back.devices[0].name, "NVIDIA H200");
  EXPECT_EQ(back.devices[0].memory_bytes, 150'000'000'000);
  EXPECT_EQ(back.devices[0].compute_capability, "9.0");
}

TEST(DeviceReport, WithoutDevicesNeedsAReason) {
  EXPECT_THROW(Parse(R"({"schema": 1, "built_with_cuda": false, "devices": []})"), Error);
}

TEST(DeviceReport, OfAnotherSchemaIsRefused) {
  EXPECT_THROW(Parse(R"({"schema": 2, "built_with_cuda": false, "reason": "x", "devices": []})"), Error);
}

struct ProbeRun {
  int exit_code = -1;
  std::string output;
};

ProbeRun RunProbe(const std::string& prefix, const std::string& suffix) {
  ProbeRun run;
  FILE* pipe = popen((prefix + PLUMBLINE_BINARY_DIR "/bin/plumb_device_probe" + suffix).c_str(), "r");
  if (pipe == nullptr) return run;
  std::array<char, 4096> buffer;
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe))
    run.output.append(buffer.data(), n);
  run.exit_code = WEXITSTATUS(pclose(pipe));
  return run;
}

TEST(DeviceProbe, WithAllDevicesHiddenSaysWhyAndExits77) {
  const ProbeRun run = RunProbe("CUDA_VISIBLE_DEVICES= ", "");
  EXPECT_EQ(run.exit_code, static_cast<int>(ExitCode::kSkipped));
  const DeviceReport report = Parse(run.output);
  EXPECT_THAT(report.devices, IsEmpty());
  EXPECT_THAT(report.reason, Not(IsEmpty()));
  if (report.built_with_cuda) {
    EXPECT_THAT(report.reason, HasSubstr("no CUDA device"));
  } else {
    EXPECT_THAT(report.reason, HasSubstr("this build has no CUDA"));
  }
}

TEST(DeviceProbe, RefusesArguments) {
  EXPECT_EQ(RunProbe("", " --help 2>/dev/null").exit_code, static_cast<int>(ExitCode::kBadInput));
}

}  // namespace
}  // namespace plumbline
