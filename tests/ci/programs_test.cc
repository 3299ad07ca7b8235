// What the programs load when they start. An empty program that links libtorch takes 0.3 s and 160 MB to
// start, so that libtorch is loaded only when its engine is asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <filesystem>

#include "tests/fakes/run_command.h"

namespace plumbline {
namespace {

using testing::HasSubstr;
using testing::Not;

// All that the dynamic loader opens for the command, at start and later.
std::string LoadedBy(std::vector<std::string> command, std::vector<std::string> environment = {}) {
  command.front() = PLUMBLINE_BINARY_DIR "/bin/" + command.front();
  environment.push_back("LD_DEBUG=files");
  return RunCommand(command, environment).err;
}

TEST(Programs, VersionMapsNoLibtorch) {
  const std::string loaded = LoadedBy({"plumb", "--version"});
  EXPECT_THAT(loaded, HasSubstr("libstdc++"));
  EXPECT_THAT(loaded, Not(HasSubstr("libtorch")));
  EXPECT_THAT(loaded, Not(HasSubstr("libcuda")));
  EXPECT_THAT(loaded, Not(HasSubstr("libnccl")));
}

TEST(Programs, ValidateMapsNoLibtorch) {
  const std::filesystem::path copy =
      std::filesystem::path(testing::TempDir()) / ("validated_" + std::to_string(getpid()));
  std::filesystem::copy(PLUMBLINE_SOURCE_DIR "/golden/RTX4090/Llama-3.1-8B/sharegpt-llama-3.1-8b-300-sps10",
                        copy, std::filesystem::copy_options::recursive);
  const std::string loaded =
      LoadedBy({"plumb", "validate", "--no-plots", "--report-only", "--bench-dir", copy / "run", "--sim-csv",
                copy / "sim/sim.csv", "--sim-log", copy / "sim/sim.log"});
  EXPECT_TRUE(std::filesystem::exists(copy / "run/validation/summary.txt"));
  EXPECT_THAT(loaded, HasSubstr("libstdc++"));
  EXPECT_THAT(loaded, Not(HasSubstr("libtorch")));
  std::filesystem::remove_all(copy);
}

TEST(Programs, ValidateSuiteMapsNoLibtorch) {
  const std::string results = testing::TempDir() + "/suite_" + std::to_string(getpid());
  const std::string loaded =
      LoadedBy({"plumb_suites", "--benchmark_filter=^validate/stored/", "--output-dir=" + results});
  EXPECT_THAT(loaded, HasSubstr("libstdc++"));
  EXPECT_THAT(loaded, Not(HasSubstr("libtorch")));
  std::filesystem::remove_all(results);
}

// The tests above can fail: a program that does load the engine is seen to.
TEST(Programs, LoadingThePluginIsSeen) {
  const std::string plugin = PLUMBLINE_BINARY_DIR "/lib/libplumbline_torch.so";
  if (!std::filesystem::exists(plugin)) GTEST_SKIP() << "this build has no torch engine";
  EXPECT_THAT(LoadedBy({"plumb", "--version"}, {"LD_PRELOAD=" + plugin}), HasSubstr("libtorch_cpu"));
}

}  // namespace
}  // namespace plumbline
