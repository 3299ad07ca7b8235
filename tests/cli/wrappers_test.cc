// tools/bench.sh and tools/validate.sh: which flags the positions and environment variables become.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fakes/run_command.h"

namespace plumbline {
namespace {

// A program in plumb's place that prints its arguments, one a line.
std::string FakePlumb() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = testing::TempDir() + "/fake_plumb_" + test->name() + std::to_string(getpid());
  std::ofstream(path) << "#!/bin/sh\nprintf '%s\\n' \"$@\"\n";
  chmod(path.c_str(), 0755);
  return path;
}

CommandOutcome CallWrapper(const std::string& script, std::vector<std::string> variables,
                           const std::vector<std::string>& arguments) {
  const std::string plumb = FakePlumb();
  variables.push_back("PLUMB=" + plumb);
  std::vector<std::string> command = {PLUMBLINE_SOURCE_DIR "/tools/" + script};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const CommandOutcome outcome = RunCommand(command, variables);
  std::filesystem::remove(plumb);
  return outcome;
}

CommandOutcome Bench(const std::vector<std::string>& variables,
                     const std::vector<std::string>& arguments = {}) {
  return CallWrapper("bench.sh", variables, arguments);
}

CommandOutcome Validate(const std::vector<std::string>& variables,
                        const std::vector<std::string>& arguments) {
  return CallWrapper("validate.sh", variables, arguments);
}

TEST(BenchWrapper, DefaultsAreTheReferenceHarnesss) {
  const CommandOutcome outcome = Bench({"RUN_ID=today"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(
      outcome.out,
      "run\n--engine\nvllm\n--model\nQwen/Qwen3-32B\n--dataset\n"
      "workloads/sharegpt-qwen3-32b-300-sps10.jsonl\n--output-dir\nresults/today\n--tensor-parallel-size\n2\n"
      "--data-parallel-size\n1\n--max-num-seqs\n128\n--max-num-batched-tokens\n2048\n--dtype\nbfloat16\n"
      "--kv-cache-dtype\nauto\n--seed\n42\n--load-format\nauto\n--tick-seconds\n1.0\n--num-reqs\n0\n"
      "--log-level\nINFO\n");
}

TEST(BenchWrapper, EveryVariableSetsItsFlag) {
  const CommandOutcome outcome = Bench({"ENGINE=torch",
                                        "MODEL=m m",
                                        "DATASET=d",
                                        "OUTPUT_DIR=o",
                                        "TP=3",
                                        "DP=4",
                                        "EXPERT_PARALLEL=1",
                                        "DISABLE_CUSTOM_ALL_REDUCE=1",
                                        "MAX_NUM_SEQS=5",
                                        "MAX_NUM_BATCHED_TOKENS=6",
                                        "MAX_MODEL_LEN=7",
                                        "DTYPE=float32",
                                        "KV_CACHE_DTYPE=fp8",
                                        "SEED=8",
                                        "LOAD_FORMAT=dummy",
                                        "RESOLVE_ONLY=1",
                                        "SKIP_TOKENIZER_INIT=1",
                                        "ENFORCE_EAGER=1",
                                        "TICK_SECONDS=0.5",
                                        "NUM_REQS=9",
                                        "LOG_LEVEL=ERROR"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(
      outcome.out,
      "run\n--engine\ntorch\n--model\nm m\n--dataset\nd\n--output-dir\no\n--tensor-parallel-size\n3\n"
      "--data-parallel-size\n4\n--enable-expert-parallel\n--disable-custom-all-reduce\n--max-num-seqs\n5\n"
      "--max-num-batched-tokens\n6\n--max-model-len\n7\n--dtype\nfloat32\n--kv-cache-dtype\nfp8\n--seed\n8\n"
      "--load-format\ndummy\n--resolve-only\n--skip-tokenizer-init\n--enforce-eager\n--tick-seconds\n0.5\n"
      "--num-reqs\n9\n--log-level\nERROR\n");
}

TEST(BenchWrapper, BlankLeavesTheFlagOut) {
  const CommandOutcome outcome = Bench({"ENGINE=", "MAX_MODEL_LEN=", "TP=", "SEED=", "ENFORCE_EAGER="});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* flag :
       {"--engine\n", "--max-model-len", "--tensor-parallel-size", "--seed", "--enforce-eager"}) {
    EXPECT_EQ(outcome.out.find(flag), std::string::npos) << outcome.out;
  }
}

TEST(BenchWrapper, RunIdNamesTheOutputFolderByTime) {
  const CommandOutcome outcome = Bench({"RUN_ID="});
  const std::size_t at = outcome.out.find("results/2");
  ASSERT_NE(at, std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find('\n', at) - at, std::string("results/20261130-213600").size());
}

TEST(BenchWrapper, ArgumentsAndOddSwitchesAreRefused) {
  EXPECT_EQ(Bench({}, {"--model"}).code, 1);
  EXPECT_EQ(Bench({"ENFORCE_EAGER=yes"}).code, 1);
}

TEST(ValidateWrapper, PositionsAndDefaultsAreTheReferenceHarnesss) {
  const CommandOutcome outcome = Validate({}, {"run", "sim.csv", "sim.log"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "validate\n--bench-dir\nrun\n--sim-csv\nsim.csv\n--sim-log\nsim.log\n"
            "--output-subdir\nvalidation\n--title\nvLLM vs LLMServingSim\n--log-level\nINFO\n");
}

TEST(ValidateWrapper, EveryVariableSetsItsFlagAndTheFourthPositionIsThePrefix) {
  const CommandOutcome outcome =
      Validate({"OUTPUT_SUBDIR=o", "TITLE=a b", "LOG_LEVEL=ERROR"}, {"run", "sim.csv", "sim.log", "p"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "validate\n--bench-dir\nrun\n--sim-csv\nsim.csv\n--sim-log\nsim.log\n--prefix\np\n"
            "--output-subdir\no\n--title\na b\n--log-level\nERROR\n");
}

TEST(ValidateWrapper, BlankLeavesTheFlagOut) {
  const CommandOutcome outcome =
      Validate({"OUTPUT_SUBDIR=", "TITLE=", "LOG_LEVEL="}, {"run", "sim.csv", "sim.log", ""});
  EXPECT_EQ(outcome.out, "validate\n--bench-dir\nrun\n--sim-csv\nsim.csv\n--sim-log\nsim.log\n");
}

TEST(ValidateWrapper, AWrongNumberOfPositionsIsRefused) {
  EXPECT_EQ(Validate({}, {"run", "sim.csv"}).code, 1);
  EXPECT_EQ(Validate({}, {"run", "sim.csv", "sim.log", "p", "more"}).code, 1);
}

}  // namespace
}  // namespace plumbline
