// tools/examples.sh: what it takes from an example, and what it says of the outcome.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "engine/base/files.h"
#include "tests/fakes/golden_pack.h"
#include "tests/fakes/run_command.h"
#include "tests/fakes/temp_folder.h"

namespace plumbline {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two examples, and a program in plumb's place that prints its arguments on a line and writes "simulated" to
// what follows --output.
class Examples : public testing::Test {
 protected:
  void SetUp() override {
    AddExample("BOX/one", R"({"num_gpu_blocks": 9, "block_size": 16})");
    AddExample("diagnostic/BOX/two", R"({"per_engine": [{"block_size": 32}, {"block_size": 32}]})");
    folder_.Write(
        "plumb",
        "#!/bin/sh\necho \"$@\"\n"
        "while [ $# -gt 0 ]; do [ \"$1\" != --output ] || printf simulated > \"$2\"; shift; done\n");
    chmod((folder_ / "plumb").c_str(), 0755);
  }

  void AddExample(const std::string& name, const std::string& kv_cache) {
    const std::string example = "bench/examples/" + name;
    folder_.Write(example + "/config.json", "{}");
    folder_.Write(example + "/outputs/sim.csv", "simulated");
    folder_.Write(example + "/vllm/meta.json",
                  R"({"engine_kwargs": {"max_num_seqs": 7, "max_num_batched_tokens": 512, "dtype": "bfloat16",
                      "kv_cache_dtype": "fp8"}, "dataset_path": "workloads/w.jsonl", "num_requests": 3,
                      "kv_cache": )" +
                      kv_cache + "}");
  }

  CommandOutcome Call(const std::vector<std::string>& arguments, std::vector<std::string> variables = {}) {
    variables.push_back("EXAMPLES=" + (folder_ / "bench/examples"));
    variables.push_back("PLUMB=" + (folder_ / "plumb"));
    variables.push_back("OUTPUT=" + (folder_ / "out"));
    std::vector<std::string> command = {PLUMBLINE_SOURCE_DIR "/tools/examples.sh"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunCommand(command, variables);
  }

  TempFolder folder_;
};

TEST_F(Examples, HelpSaysWhatThereIs) {
  const CommandOutcome outcome = Call({"--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* word : {"run|validate", "EXAMPLES", "BLOCK_SIZE", "OUTPUT", "PLUMB"}) {
    EXPECT_THAT(outcome.out, HasSubstr(word));
  }
  EXPECT_EQ(Call({}).code, 1);
  EXPECT_EQ(Call({"redo"}).code, 1);
}

TEST_F(Examples, OneIsSimulatedAsItWasRecorded) {
  const CommandOutcome outcome = Call({"run", "BOX/one"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("simulate --cluster-config " + (folder_ / "bench/examples/BOX/one/config.json") +
                        " --dataset " + (folder_ / "workloads/w.jsonl") + " --output " +
                        (folder_ / "out/BOX/one/sim.csv") + " --log " + (folder_ / "out/BOX/one/sim.log") +
                        " --num-reqs 3 --max-num-seqs 7 --max-num-batched-tokens 512 --dtype bfloat16 "
                        "--kv-cache-dtype fp8 --block-size 16\n"));
  EXPECT_THAT(outcome.out, HasSubstr("BOX/one: sim.csv is the stored one to the byte"));
}

TEST_F(Examples, AllAreDoneDiagnosticOnesToo) {
  const CommandOutcome outcome = Call({"run"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("BOX/one: sim.csv is"));
  EXPECT_THAT(outcome.out, HasSubstr("--block-size 32")) << "recorded an engine";
  EXPECT_THAT(outcome.out, HasSubstr("diagnostic/BOX/two: sim.csv is"));
}

TEST_F(Examples, TheBlockSizeAskedForIsTaken) {
  EXPECT_THAT(Call({"run", "BOX/one"}, {"BLOCK_SIZE=64"}).out, HasSubstr("--block-size 64"));
  AddExample("BOX/one", "null");
  EXPECT_THAT(Call({"run", "BOX/one"}).out, Not(HasSubstr("--block-size"))) << "the simulator's own";
}

TEST_F(Examples, AnotherOutcomeIsAFailureButTheOthersAreDone) {
  folder_.Write("bench/examples/BOX/one/outputs/sim.csv", "stored");
  const CommandOutcome outcome = Call({"run"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("BOX/one: sim.csv differs from the stored one"));
  EXPECT_THAT(outcome.out, HasSubstr("diagnostic/BOX/two: sim.csv is"));
}

TEST_F(Examples, UnknownOnesAreNamedWithTheKnown) {
  const CommandOutcome outcome = Call({"run", "BOX/three"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("BOX/three is not an example; there are: BOX/one, diagnostic/BOX/two"));
}

TEST_F(Examples, WhatWasSimulatedIsJudgedElseTheStoredOutput) {
  const auto judged = [&](const std::string& sim) {
    return "validate --bench-dir " + (folder_ / "bench/examples/BOX/one/vllm") + " --sim-csv " + sim +
           "/sim.csv --sim-log " + sim + "/sim.log --output-subdir " + (folder_ / "out/BOX/one/validation") +
           " --report-only\n";
  };
  EXPECT_THAT(Call({"validate", "BOX/one"}).out,
              HasSubstr(judged(folder_ / "bench/examples/BOX/one/outputs")));
  ASSERT_EQ(Call({"run", "BOX/one"}).code, 0);
  EXPECT_THAT(Call({"validate", "BOX/one"}).out, HasSubstr(judged(folder_ / "out/BOX/one")));
}

TEST(ExamplesOfThePack, OneIsReproduced) {
  const std::string pack = GoldenPack();
  if (pack.empty()) GTEST_SKIP() << "no checkout of the reference simulator: set PLUMBLINE_GOLDEN_PATH";
  const TempFolder out;
  const std::vector<std::string> variables = {"PLUMBLINE_GOLDEN_PATH=" + pack, "OUTPUT=" + out.path(),
                                              "PLUMB=" PLUMBLINE_BINARY_DIR "/bin/plumb"};
  const std::string script = PLUMBLINE_SOURCE_DIR "/tools/examples.sh";
  const CommandOutcome run = RunCommand({script, "run", "RTXPRO6000/Llama-3.1-8B"}, variables);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("to the byte"));
  EXPECT_EQ(RunCommand({script, "validate", "RTXPRO6000/Llama-3.1-8B"}, variables).code, 0);
  EXPECT_THAT(ReadFile(out / "RTXPRO6000/Llama-3.1-8B/validation/summary.txt"), HasSubstr("TTFT"));
}

}  // namespace
}  // namespace plumbline
