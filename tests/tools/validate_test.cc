#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/files.h"
#include "tests/fakes/temp_folder.h"
#include "tools/command.h"

namespace plumbline {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A run of twenty requests with TTFT 100 ms, TPOT 10 ms and eleven tokens, and a simulation of the same
// length.
class ValidateCommand : public ::testing::Test {
 protected:
  ValidateCommand() {
    WriteRun(0.1);
    std::string csv = "request id,input,output,arrival,end_time,latency,queuing_delay,TTFT,TPOT\r\n";
    for (int i = 0; i < 20; ++i)
      csv += std::to_string(i) + ",5,11,0,200000000,200000000,0,100000000,10000000\r\n";
    folder_.Write("sim.csv", csv);
    folder_.Write("sim.log", "  • Max num seqs : 4\nTotal requests: 20\n");
  }

  void WriteRun(double ttft_s) {
    std::string lines;
    for (int i = 0; i < 20; ++i) {
      lines += R"({"request_id": "bench-)" + std::to_string(i) +
               R"(", "input_toks": 5, "output_toks": 11, "queued_ts": 1.0, "first_token_ts": )" +
               std::to_string(1 + ttft_s) + R"(, "last_token_ts": )" + std::to_string(1.1 + ttft_s) + "}\n";
    }
    folder_.Write("run/requests.jsonl", lines);
  }

  int Validate(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"validate",          "--bench-dir", folder_ / "run",    "--sim-csv",
                                          folder_ / "sim.csv", "--sim-log",   folder_ / "sim.log"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "plots") == more.end()) arguments.push_back("--no-plots");
    Tools tools;
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = RunPlumb(arguments, tools);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  TempFolder folder_;
  std::string out_;
  std::string err_;
};

TEST_F(ValidateCommand, AgreementEndsWithZeroAndASummary) {
  EXPECT_EQ(Validate(), 0) << err_;
  const std::string summary = ReadFile(folder_ / "run/validation/summary.txt");
  EXPECT_THAT(summary, StartsWith("Metric                           vLLM         Sim     Diff%\n"));
  EXPECT_THAT(out_, StartsWith(summary));
  EXPECT_THAT(out_, HasSubstr("run/validation/summary.txt"));
  EXPECT_EQ(err_, "");
}

TEST_F(ValidateCommand, ABreachEndsWithThreeAndOneLine) {
  WriteRun(0.11);
  EXPECT_EQ(Validate(), 3);
  EXPECT_THAT(err_, HasSubstr("regressed: TTFT Mean"));
  EXPECT_THAT(err_, HasSubstr("again: plumb validate --bench-dir"));
  EXPECT_EQ(Validate({"--report-only"}), 0);
}

TEST_F(ValidateCommand, ATolerancesFileChangesTheVerdict) {
  WriteRun(0.11);
  const auto limits = [this](const char* relative) {
    return folder_.Write("limits.json",
                         R"({"tolerances": [{"metric": "ttft", "statistic": "mean", "relative": )" +
                             std::string(relative) + R"(, "reason": "a test"}]})");
  };
  EXPECT_EQ(Validate({"--tolerances", limits("0.10")}), 0);
  EXPECT_EQ(Validate({"--tolerances", limits("0.09")}), 3);
  EXPECT_EQ(Validate({"--tolerances", folder_.Write("bad.json", "{")}), 1);
}

TEST_F(ValidateCommand, RunsThatCannotBeComparedEndWithSix) {
  for (const char* run : {R"({"kind": "resolve_only"})", R"({"kind": "gate_stats"})",
                          R"({"kind": "diagnostic", "status": "failed"})", R"({"pacing": "paced"})",
                          R"({"pacing": "synchronized"})", R"({"status": "aborted"})"}) {
    SCOPED_TRACE(run);
    folder_.Write("run/meta.json", R"({"run": )" + std::string(run) + "}");
    EXPECT_EQ(Validate(), 6);
    EXPECT_EQ(Validate({"--report-only"}), 6);
    EXPECT_THAT(err_, HasSubstr("invalid: the run"));
    EXPECT_THAT(err_, HasSubstr("remedy: "));
  }
}

TEST_F(ValidateCommand, FlagsNameTheFiles) {
  EXPECT_EQ(Validate({"--output-subdir", "a/b", "--prefix", "p"}), 0) << err_;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/a/b/p_summary.txt"));
  EXPECT_EQ(Validate({"--prefix", ""}), 0) << err_;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/validation/summary.txt"));
  EXPECT_EQ(Validate({"--prefix", "../x"}), 1);
}

TEST_F(ValidateCommand, AnAnchorWithoutStampsIsInvalidAndAnUnknownOneAnError) {
  EXPECT_EQ(Validate({"--anchor", "queued"}), 0);
  EXPECT_EQ(Validate({"--anchor", "due"}), 6);
  EXPECT_EQ(Validate({"--anchor", "start"}), 1);
  EXPECT_THAT(err_, HasSubstr("auto, due, arrival, sent, queued"));
}

TEST_F(ValidateCommand, FilesThatCannotBeReadEndWithOne) {
  for (const char* name : {"run/requests.jsonl", "sim.csv", "sim.log"}) {
    SCOPED_TRACE(name);
    const std::string whole = ReadFile(folder_ / name);
    folder_.Write(name, std::string("\x00\xff\x7f", 3) + "binary");
    EXPECT_EQ(Validate(), 1);
    EXPECT_THAT(err_, HasSubstr(name));
    std::filesystem::remove(folder_ / name);
    EXPECT_EQ(Validate(), 1);
    folder_.Write(name, whole);
  }
  EXPECT_EQ(Validate(), 0);
}

TEST_F(ValidateCommand, ASimulationOfNothingIsInvalid) {
  folder_.Write("sim.csv", "request id,input,output,arrival,end_time,latency,queuing_delay,TTFT,TPOT\r\n");
  EXPECT_EQ(Validate(), 6);
  EXPECT_THAT(err_, HasSubstr("the simulator finished 0 requests"));
  EXPECT_THAT(out_, HasSubstr("TTFT Mean                       100.0         n/a       n/a"));
  EXPECT_THAT(out_, Not(ContainsRegex("[+-][0-9.]+%")));
}

}  // namespace
}  // namespace plumbline
