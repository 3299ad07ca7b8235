// `plumb run` from the outside, with the scripted engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "fixtures/run/run_files.h"
#include "tests/fakes/run_command.h"
#include "tests/fakes/small_disk.h"
#include "tests/fakes/temp_folder.h"

namespace plumbline {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kPlumb = PLUMBLINE_BINARY_DIR "/bin/plumb";

class RunCommandLine : public testing::Test {
 protected:
  void SetUp() override { WriteWorkload(3, 4); }

  // Requests at 0 with one input token each.
  void WriteWorkload(int requests, int output_toks) {
    std::string rows;
    for (int i = 0; i < requests; ++i) {
      rows += R"({"input_toks":1,"output_toks":)" + std::to_string(output_toks) +
              R"(,"arrival_time_ns":0,"input_tok_ids":[)" + std::to_string(i) + "]}\n";
    }
    folder_.Write("workload.jsonl", rows);
  }

  std::vector<std::string> Command(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {kPlumb,         "run",
                                        "--engine",     "scripted",
                                        "--model",      "m",
                                        "--dataset",    folder_ / "workload.jsonl",
                                        "--output-dir", folder_ / "run"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  bool Written(const char* name) const { return std::filesystem::exists(folder_ / "run/" + name); }

  TempFolder folder_;
};

TEST_F(RunCommandLine, PrintsTheFiguresAndWhereTheyLie) {
  const CommandOutcome outcome = RunCommand(Command());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("TTFT (ms)"));
  EXPECT_THAT(outcome.out, HasSubstr("output tokens/s"));
  EXPECT_THAT(outcome.out, HasSubstr("artifacts: " + folder_ / "run"));
  EXPECT_THAT(outcome.err, HasSubstr("3/3 requests"));
  const RunRecord run = ReadRun(folder_ / "run");
  EXPECT_EQ(run.requests.size(), 3U);
  EXPECT_EQ(run.meta.engine, "scripted");
}

TEST_F(RunCommandLine, LogLevelErrorIsQuietButForProgress) {
  const CommandOutcome outcome = RunCommand(Command({"--log-level", "ERROR"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, Not(HasSubstr("booting")));
}

TEST_F(RunCommandLine, ResolveOnlyWritesMetaAlone) {
  const CommandOutcome outcome = RunCommand(Command({"--resolve-only"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(Written(kMetaFile));
  EXPECT_FALSE(Written(kRequestsFile));
  EXPECT_FALSE(Written(kEngineStartFile));
}

TEST_F(RunCommandLine, SignalsCancelAndLeaveNoMeta) {
  WriteWorkload(2, 1000000);
  for (int number : {SIGINT, SIGTERM}) {
    std::filesystem::remove_all(folder_ / "run");
    StartedCommand run(Command({"--engine-arg", "itl-ms=1"}));
    ASSERT_TRUE(run.AwaitStderr("replaying 2 requests"));
    run.Signal(number);
    const CommandOutcome outcome = run.Wait();
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_FALSE(Written(kMetaFile));
    EXPECT_TRUE(Written(kEngineStartFile));
    EXPECT_EQ(ReadRun(folder_ / "run").requests.size(), 2U);
  }
}

TEST_F(RunCommandLine, DeadEngineEndsWithFive) {
  const CommandOutcome outcome = RunCommand(Command({"--engine-arg", "die-after-tokens=5"}));
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  EXPECT_FALSE(Written(kMetaFile));
  EXPECT_EQ(ReadRun(folder_ / "run").requests.size(), 3U);
}

TEST_F(RunCommandLine, UnservedRequestsMakeTheRunInvalid) {
  const CommandOutcome outcome = RunCommand(Command({"--engine-arg", "fail-every=2"}));
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("were not served"));
  EXPECT_TRUE(Written(kMetaFile));
}

TEST_F(RunCommandLine, FullDiskEndsWithFourAndNoMeta) {
  WriteWorkload(400, 1);
  const std::string small = folder_ / "small";
  std::filesystem::create_directories(small);
  std::vector<std::string> command = Command();
  command.back() = small + "/run";
  const std::optional<int> outcome = RunOnSmallDisk(small, 32 * 1024, [&] {
    const CommandOutcome ended = RunCommand(command);
    const bool named = ended.err.find("requests.jsonl") != std::string::npos;
    return ended.code == 4 && named && !std::filesystem::exists(small + "/run/meta.json") ? 0 : 2;
  });
  if (!outcome) GTEST_SKIP() << "this machine allows no small file system of one's own";
  EXPECT_EQ(*outcome, 0);
}

struct BadCase {
  const char* name;
  std::vector<std::string> flags;
  const char* message;
};

class BadRunFlags : public RunCommandLine, public testing::WithParamInterface<BadCase> {};

TEST_P(BadRunFlags, AreNamed) {
  const CommandOutcome outcome = RunCommand(Command(GetParam().flags));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("plumb: "));
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().message));
  EXPECT_FALSE(Written(kEngineStartFile));
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadRunFlags,
    testing::Values(BadCase{"UnknownFlag", {"--modle", "x"}, "did you mean --model?"},
                    BadCase{"EngineArg", {"--engine-arg", "nosuch=1"}, "nosuch"},
                    BadCase{"EngineArgForm", {"--engine-arg", "nosuch"}, "must be KEY=VALUE"},
                    BadCase{"TickSeconds", {"--tick-seconds", "nan"}, "--tick-seconds"},
                    BadCase{"TickSecondsZero", {"--tick-seconds", "0"}, "--tick-seconds"},
                    BadCase{"NumReqs", {"--num-reqs", "-1"}, "--num-reqs"},
                    BadCase{"LogLevel", {"--log-level", "LOUD"}, "--log-level"},
                    BadCase{"GateStats", {"--record-gate-stats"}, "--record-gate-stats"},
                    BadCase{"Positional", {"extra"}, "extra"}),
    [](const auto& parameter) { return parameter.param.name; });

TEST_F(RunCommandLine, UnknownEngineNamesTheKnownOnes) {
  std::vector<std::string> command = Command();
  command[3] = "no-such-engine";
  const CommandOutcome outcome = RunCommand(command);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--engine"));
  EXPECT_THAT(outcome.err, HasSubstr("scripted"));
}

TEST_F(RunCommandLine, BadDatasetsAreNamed) {
  const std::string binary(3000, '\0');
  const std::vector<std::string> bad = {
      folder_ / "nosuch.jsonl",
      folder_.path(),
      folder_.Write("empty.jsonl", ""),
      folder_.Write("binary.jsonl", binary),
      folder_.Write("truncated.jsonl", R"({"input_toks":2,"output_toks":1,"arrival)"),
      folder_.Write("negative.jsonl",
                    R"({"input_toks":1,"output_toks":1,"arrival_time_ns":-5,"input_tok_ids":[1]})"
                    "\n"),
      folder_.Write("nan.jsonl",
                    R"({"input_toks":1,"output_toks":1,"arrival_time_ns":NaN,"input_tok_ids":[1]})"
                    "\n"),
      folder_.Write("counts.jsonl", R"({"input_toks":1,"output_toks":1,"arrival_time_ns":0})"
                                    "\n")};
  for (const std::string& dataset : bad) {
    std::vector<std::string> command = Command();
    command[7] = dataset;
    const CommandOutcome outcome = RunCommand(command);
    EXPECT_EQ(outcome.code, 1) << dataset << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(dataset));
  }
}

TEST_F(RunCommandLine, UsedOutputFolderIsRefused) {
  ASSERT_EQ(RunCommand(Command()).code, 0);
  const CommandOutcome outcome = RunCommand(Command());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(folder_ / "run"));
}

TEST_F(RunCommandLine, OutputBelowAFileCannotBeWritten) {
  std::vector<std::string> command = Command();
  command.back() = folder_ / "workload.jsonl/run";
  EXPECT_EQ(RunCommand(command).code, 4);
}

}  // namespace
}  // namespace plumbline
