// `plumb profile` as a user runs it, on a model of a few thousand parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/files.h"
#include "tests/fakes/run_command.h"
#include "tests/fakes/temp_folder.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

class PlumbProfile : public testing::Test {
 protected:
  CommandOutcome Plumb(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), PLUMBLINE_BINARY_DIR "/bin/plumb");
    return RunCommand(arguments);
  }
  CommandOutcome Profile(const std::string& output) const {
    return Plumb({"profile", "--engine", "torch", "--model",
                  PLUMBLINE_SOURCE_DIR "/tests/testdata/numerics/llama-tiny", "--dtype", "float32",
                  "--max-num-seqs", "4", "--max-num-batched-tokens", "64", "--kv-cache-memory-bytes",
                  "4194304", "--passes", "1", "--output", output});
  }

  TempFolder folder_;
};

TEST_F(PlumbProfile, ItsBundleIsSimulatedAndNeverWrittenOver) {
  const std::string bundle = folder_ / "bundle";
  const CommandOutcome profiled = Profile(bundle);
  if (profiled.err.find("is not an engine of this build") != std::string::npos) {
    GTEST_SKIP() << "this build has no torch engine";
  }
  ASSERT_EQ(profiled.code, 0) << profiled.err;
  EXPECT_THAT(profiled.out, HasSubstr(bundle + "/cluster.json"));
  const std::string workload =
      folder_.Write("w.jsonl", "{\"input_toks\":20,\"output_toks\":4,\"arrival_time_ns\":0}\n");
  const CommandOutcome simulated = Plumb({"simulate", "--cluster-config", bundle + "/cluster.json",
                                          "--dataset", workload, "--output", folder_ / "sim.csv"});
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_THAT(ReadFile(folder_ / "sim.csv"), HasSubstr("0,0,llama-tiny,20,4,0,"));

  const std::string cluster = ReadFile(bundle + "/cluster.json");
  const CommandOutcome again = Profile(bundle);
  EXPECT_EQ(again.code, 4);
  EXPECT_THAT(again.err, HasSubstr("never written over"));
  EXPECT_EQ(ReadFile(bundle + "/cluster.json"), cluster);
}

}  // namespace
}  // namespace plumbline
