#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/files.h"
#include "engine/base/sha256.h"
#include "tests/fakes/temp_folder.h"
#include "tests/tools/call_plumb.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

TEST(PlumbWorkload, GeneratesTheSameFileTwiceAndDescribesIt) {
  const TempFolder folder;
  const std::string file = folder / "w.jsonl";
  const std::vector<std::string> arguments = {
      "workload", "generate", "--num-reqs",    "5", "--rate",   "2",  "--input-toks", "6",
      "--seed",   "7",        "--output-toks", "3", "--output", file, "--vocab-size", "50"};
  const PlumbOutcome first = CallPlumb(arguments);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("requests       5\n"));
  EXPECT_THAT(first.out, HasSubstr("input_toks     6 to 6, mean 6.0, total 30\n"));
  EXPECT_THAT(first.out, HasSubstr("sha256         " + Sha256OfFile(file)));
  EXPECT_EQ(CallPlumb(arguments).code, 0);
  const PlumbOutcome described =
      CallPlumb({"workload", "describe", file, "--for-replay", "--vocab-size", "50"});
  EXPECT_EQ(described.code, 0) << described.err;
  EXPECT_EQ(described.out, first.out);
}

TEST(PlumbWorkload, DoesNotChangeAFileThatHoldsSomethingElse) {
  const TempFolder folder;
  const std::string file = folder.Write("w.jsonl", "mine\n");
  const PlumbOutcome outcome = CallPlumb({"workload", "generate", "--num-reqs", "1", "--output", file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--output: exists and holds something else"));
  EXPECT_EQ(ReadFile(file), "mine\n");
}

TEST(PlumbWorkload, GeneratesFromASpecFile) {
  const TempFolder folder;
  const std::string spec =
      folder.Write("spec.json", R"({"num_requests":4,"input":2,"output":1,"arrivals":"burst"})");
  const PlumbOutcome outcome =
      CallPlumb({"workload", "generate", "--spec", spec, "--output", folder / "w.jsonl"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("at most 4 at once"));
  const PlumbOutcome both =
      CallPlumb({"workload", "generate", "--spec", spec, "--seed", "3", "--output", folder / "w.jsonl"});
  EXPECT_EQ(both.code, 1);
  EXPECT_EQ(both.err, "plumb: --seed: cannot be given together with --spec\n");
}

TEST(PlumbWorkload, BadValuesAndFilesAreBadInput) {
  const TempFolder folder;
  const std::string out = folder / "w.jsonl";
  EXPECT_EQ(CallPlumb({"workload", "generate", "--arrivals", "gamma", "--output", out}).code, 1);
  EXPECT_EQ(CallPlumb({"workload", "generate", "--rate", "nan", "--output", out}).code, 1);
  EXPECT_EQ(CallPlumb({"workload", "generate", "--input-toks", "0", "--output", out}).code, 1);
  EXPECT_EQ(CallPlumb({"workload", "generate"}).code, 1);
  EXPECT_EQ(CallPlumb({"workload"}).code, 1);
  EXPECT_EQ(CallPlumb({"workload", "describe", out}).code, 1);
  const std::string session =
      folder.Write("s.jsonl", R"({"arrival_time_ns":0,"sub_requests":[{"input_toks":1,"output_toks":1}]})");
  EXPECT_EQ(CallPlumb({"workload", "describe", session}).code, 0);
  const auto no_ids = CallPlumb({"workload", "describe", session, "--for-replay"});
  EXPECT_EQ(no_ids.code, 1);
  EXPECT_THAT(no_ids.err, testing::HasSubstr("without token ids"));
}

}  // namespace
}  // namespace plumbline
