#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/fakes/temp_folder.h"
#include "tools/command.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;

class GoldenCommand : public ::testing::Test {
 protected:
  int Run(std::vector<std::string> words) {
    std::vector<std::string> arguments = {"golden", "--golden-dir", golden_.path()};
    arguments.insert(arguments.end(), words.begin(), words.end());
    Tools tools;
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = RunPlumb(arguments, tools);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }
  void WriteCheckout(const char* last_token) {
    const std::string base = "bench/examples/H/M/";
    checkout_.Write(
        base + "vllm/requests.jsonl",
        R"({"request_id": "bench-0", "input_toks": 5, "output_toks": 11, "queued_ts": 1.0, "first_token_ts": 1.1, "last_token_ts": )" +
            std::string(last_token) + "}\n");
    checkout_.Write(base + "outputs/sim.csv",
                    "request id,input,output,arrival,end_time,latency,queuing_delay,TTFT,TPOT\r\n"
                    "0,5,11,0,200000000,200000000,0,100000000,10000000\r\n");
    checkout_.Write(base + "outputs/sim.log", "  • Max num seqs : 4\nTotal requests: 1\n");
  }

  TempFolder golden_;
  TempFolder checkout_;
  std::string out_;
  std::string err_;
};

TEST_F(GoldenCommand, ImportsAndLists) {
  WriteCheckout("1.2");
  EXPECT_EQ(Run({"import", checkout_.path(), "--commit", "abc"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("H/M/recorded: new"));
  EXPECT_EQ(Run({"list"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("validate/stored/H/M/recorded\n  pass\n"));

  WriteCheckout("1.3");
  EXPECT_EQ(Run({"import", checkout_.path(), "--commit", "abd"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("H/M/recorded: changed"));
  EXPECT_THAT(out_, HasSubstr("before (pass)"));
  EXPECT_THAT(out_, HasSubstr("after (regressed)"));
  EXPECT_EQ(Run({"list"}), 0);
  EXPECT_THAT(out_, HasSubstr("  pass\n"));
}

TEST_F(GoldenCommand, NothingThereIsSaid) {
  EXPECT_EQ(Run({"import", "/nonexistent", "--commit", "abc"}), 1);
  EXPECT_THAT(err_, HasSubstr("holds no recorded example"));
  EXPECT_EQ(Run({"import", checkout_.path()}), 1);
  EXPECT_EQ(Run({}), 1);
}

}  // namespace
}  // namespace plumbline
