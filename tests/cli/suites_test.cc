// plumb_suites from the outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/json.h"
#include "tests/fakes/run_command.h"
#include "tests/fakes/temp_folder.h"

namespace plumbline {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kSuites = PLUMBLINE_BINARY_DIR "/bin/plumb_suites";

std::set<std::string> Lines(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return lines;
}

// Every example has a ctest entry and every ctest entry an example.
TEST(Suites, ExamplesAreTheCtestEntries) {
  std::set<std::string> registered;
  std::istringstream names(PLUMBLINE_SUITE_EXAMPLES);
  for (std::string name; std::getline(names, name, ',');)
    registered.insert(name + "/iterations:1/manual_time");
  ASSERT_GE(registered.size(), 14U);
  const CommandOutcome outcome = RunCommand({kSuites, "--benchmark_list_tests"}, {"PLUMBLINE_GOLDEN_PATH="});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Lines(outcome.out), registered);
}

TEST(Suites, ListingTouchesNothing) {
  TempFolder folder;
  const CommandOutcome outcome =
      RunCommand({kSuites, "--benchmark_list_tests", "--output-dir=" + folder.path() + "/results"},
                 {"LD_DEBUG=files", "CUDA_VISIBLE_DEVICES=", "HOME=/nonexistent"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/results"));
  EXPECT_THAT(outcome.err, HasSubstr("libbenchmark"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("libtorch")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("libcuda")));
}

TEST(Suites, FilterThatMatchesNothingIsAnError) {
  EXPECT_EQ(RunCommand({kSuites, "--benchmark_filter=^nosuch/"}).code, 2);
}

TEST(Suites, AbsentEngineSkipsUnlessRequired) {
  TempFolder folder;
  const std::vector<std::string> command = {kSuites, "--benchmark_filter=^vllm/",
                                            "--output-dir=" + folder.path()};
  const CommandOutcome skipped = RunCommand(command, {"PLUMBLINE_PYTHON=no-such-python"});
  EXPECT_EQ(skipped.code, 77) << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr("there is no no-such-python"));
  const CommandOutcome required =
      RunCommand(command, {"PLUMBLINE_PYTHON=no-such-python", "PLUMBLINE_REQUIRE=vllm"});
  EXPECT_EQ(required.code, 5);
  EXPECT_THAT(required.err, HasSubstr("PLUMBLINE_REQUIRE names vllm"));
}

// A suite folder of someone else's: what it expects is gated.
TEST(Suites, ChangedExpectationFails) {
  TempFolder folder;
  Json example = ParseJson(R"({
    "workload": {"generate": {"num_requests": 4, "input": 8, "output": 8, "arrivals": "burst", "vocab_size": 50},
                 "sha256": ""},
    "engine": {"kind": "scripted", "model": "m"},
    "expect": {"preemptions": 0, "reason": "The scripted engine has no KV cache."}})",
                           "test");
  const auto run = [&] {
    folder.Write("suites/cpu/m/w/example.json", PrintJson(example));
    return RunCommand({kSuites, "--benchmark_filter=^cpu/m/w/", "--output-dir=" + folder.path() + "/results"},
                      {"PLUMBLINE_SUITES_PATH=" + folder.path() + "/suites"});
  };
  const CommandOutcome stale = run();
  EXPECT_EQ(stale.code, 6) << stale.err;
  const std::string marker = "has SHA-256 ";
  const std::size_t at = stale.err.find(marker);
  ASSERT_NE(at, std::string::npos) << stale.err;
  example["workload"]["sha256"] = stale.err.substr(at + marker.size(), 64);
  EXPECT_EQ(run().code, 0);
  example["expect"]["preemptions"] = 1;
  const CommandOutcome regressed = run();
  EXPECT_EQ(regressed.code, 3) << regressed.err;
  EXPECT_THAT(regressed.err, HasSubstr("preemptions: 0 instead of 1"));
  EXPECT_THAT(regressed.err, HasSubstr("--benchmark_filter='^cpu/m/w/'"));
}

}  // namespace
}  // namespace plumbline
