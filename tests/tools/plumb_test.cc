#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/json.h"
#include "tests/tools/call_plumb.h"
#include "tools/command.h"

namespace plumbline {
namespace {

TEST(Plumb, VersionIsOneLine) {
  const PlumbOutcome outcome = CallPlumb({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.substr(0, 6), "plumb ");
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1);
}

TEST(Plumb, UnknownCommandNamesTheNearest) {
  const PlumbOutcome outcome = CallPlumb({"doctr"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("plumb: doctr: is not a command (known: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("did you mean doctor?"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST(Plumb, UnknownFlagNamesCommandAndNearest) {
  const PlumbOutcome outcome = CallPlumb({"doctor", "--hlp=3"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "plumb: --hlp: is not a flag of 'plumb doctor'; did you mean --help?\n");
}

TEST(Plumb, NoCommandIsBadUsage) {
  const PlumbOutcome outcome = CallPlumb({});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "plumb: a command is missing; plumb --help lists them\n");
}

TEST(Plumb, DoctorFindsCoresAndMemory) {
  const PlumbOutcome outcome = CallPlumb({"doctor"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("cores"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("GiB"), std::string::npos) << outcome.out;
}

TEST(Plumb, DoctorNamesEveryThingThatEnginesNeed) {
  const PlumbOutcome outcome = CallPlumb({"doctor"});
  for (const char* what : {"cores", "memory", "instructions", "build", "engine torch", "BLAS", "CUDA", "NCCL",
                           "GPU", "vllm", "gnuplot"}) {
    EXPECT_NE(outcome.out.find(what), std::string::npos) << what << " in:\n" << outcome.out;
  }
}

TEST(Plumb, DoctorPrintsCtestsResourceSpecification) {
  const PlumbOutcome outcome = CallPlumb({"doctor", "--ctest-resources"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json spec = ParseJson(outcome.out, "stdout");
  EXPECT_EQ(spec["version"]["major"], 1);
  ASSERT_EQ(spec["local"].size(), 1U);
  for (const Json& gpu : spec["local"][0]["gpus"]) EXPECT_EQ(gpu["slots"], 1);
}

}  // namespace
}  // namespace plumbline
