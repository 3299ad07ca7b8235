// `plumb refresh` and `plumb accept` from the outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/files.h"
#include "tests/fakes/run_command.h"
#include "tests/fakes/temp_folder.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

class GoldenLifeCycle : public testing::Test {
 protected:
  CommandOutcome Plumb(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), PLUMBLINE_BINARY_DIR "/bin/plumb");
    arguments.insert(arguments.end(), {"--golden-dir", golden_.path()});
    return RunCommand(arguments);
  }

  TempFolder golden_;
};

TEST_F(GoldenLifeCycle, RefreshThenAcceptThenNothingToDo) {
  const CommandOutcome first = Plumb({"refresh", "validate/structural/flat"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("structural/flat: new"));
  EXPECT_THAT(first.out, HasSubstr("plumb accept structural/flat --by NAME --why REASON"));
  EXPECT_FALSE(std::filesystem::exists(golden_ / "structural/flat"));

  const CommandOutcome accept =
      Plumb({"accept", "structural/flat", "--by", "somebody", "--why", "it is the first"});
  ASSERT_EQ(accept.code, 0) << accept.err;
  const std::string provenance = ReadFile(golden_ / "structural/flat/provenance.json");
  EXPECT_THAT(provenance, HasSubstr(R"("by": "somebody")"));
  EXPECT_THAT(provenance, HasSubstr(R"("why": "it is the first")"));
  EXPECT_THAT(provenance, HasSubstr(R"("command": "plumb refresh structural/flat")"));
  EXPECT_EQ(Plumb({"refresh", "structural/flat"}).out, "structural/flat: unchanged\n");
}

TEST_F(GoldenLifeCycle, RefreshAllLeavesEveryCaseWaiting) {
  ASSERT_EQ(Plumb({"refresh", "--all"}).code, 0);
  for (const char* name : {"dp_ep", "flat", "pd", "pp", "preemption", "prefix", "session", "tp"}) {
    EXPECT_TRUE(std::filesystem::exists(golden_ / ("structural/" + std::string(name) + ".new"))) << name;
  }
}

TEST_F(GoldenLifeCycle, ATemporaryFolderThatIsNotThereIsExplained) {
  const CommandOutcome outcome =
      RunCommand({PLUMBLINE_BINARY_DIR "/bin/plumb", "refresh", "--all", "--golden-dir", golden_.path()},
                 {"TMPDIR=" + (golden_ / "none")});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("TMPDIR"));
}

TEST_F(GoldenLifeCycle, WrongCallsAreExplained) {
  const CommandOutcome unknown = Plumb({"refresh", "structural/none"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("structural/flat"));
  EXPECT_EQ(Plumb({"refresh"}).code, 1);
  EXPECT_EQ(Plumb({"refresh", "--all", "structural/flat"}).code, 1);
  EXPECT_EQ(Plumb({"accept", "structural/flat", "--by", "a"}).code, 1);
  const CommandOutcome nothing = Plumb({"accept", "structural/flat", "--by", "a", "--why", "b"});
  EXPECT_EQ(nothing.code, 1);
  EXPECT_THAT(nothing.err, HasSubstr("nothing waits"));
}

}  // namespace
}  // namespace plumbline
