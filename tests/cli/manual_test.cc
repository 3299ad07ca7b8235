// What the programs say of themselves and what is written about them is one text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/base/exit_code.h"
#include "engine/base/files.h"
#include "tests/fakes/run_command.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

std::string Help(const std::vector<std::string>& words = {}) {
  std::vector<std::string> command = {PLUMBLINE_BINARY_DIR "/bin/plumb"};
  command.insert(command.end(), words.begin(), words.end());
  command.push_back("--help");
  const CommandOutcome outcome = RunCommand(command);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

std::string Readme() {
  return ReadFile(PLUMBLINE_SOURCE_DIR "/README.md");
}

std::set<std::string> FlagsIn(const std::string& text) {
  const std::regex flag("--[a-z][a-z0-9-]+");
  std::set<std::string> flags;
  for (std::sregex_iterator match(text.begin(), text.end(), flag), end; match != end; ++match) {
    flags.insert(match->str());
  }
  return flags;
}

TEST(Manual, IsWhatHelpPrints) {
  EXPECT_EQ(Help(), ReadFile(PLUMBLINE_SOURCE_DIR "/tools/manual.txt"))
      << "accept the new text with: plumb --help > tools/manual.txt";
}

TEST(Manual, HoldsEveryFlagOfEveryCommand) {
  const std::set<std::string> manual = FlagsIn(Help());
  for (const char* command :
       {"run", "validate", "workload", "golden", "refresh", "accept", "doctor", "simulate"}) {
    const std::set<std::string> flags = FlagsIn(Help({command}));
    EXPECT_FALSE(flags.empty()) << command;
    for (const std::string& flag : flags) EXPECT_EQ(manual.count(flag), 1U) << command << " " << flag;
  }
}

// Flags on README lines that call plumb, but for those of plumb_suites.
TEST(Manual, ReadmeNamesNoFlagThatIsNotThere) {
  const std::set<std::string> manual = FlagsIn(Help());
  std::istringstream lines(Readme());
  int calls = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_search(line, std::regex("\\bplumb "))) continue;
    ++calls;
    for (const std::string& flag : FlagsIn(line)) EXPECT_EQ(manual.count(flag), 1U) << line;
  }
  EXPECT_GT(calls, 0);
}

TEST(Manual, ExitCodesAreOneTable) {
  const std::string help = Help();
  const std::string readme = Readme();
  for (ExitCode code :
       {ExitCode::kPass, ExitCode::kBadInput, ExitCode::kNothingSelected, ExitCode::kRegressed,
        ExitCode::kInterrupted, ExitCode::kEngineFailed, ExitCode::kInvalid, ExitCode::kSkipped}) {
    const std::string number = std::to_string(static_cast<int>(code));
    const std::regex row("\n\\| " + number + " \\| ([^|\n]+) \\|");
    std::smatch match;
    ASSERT_TRUE(std::regex_search(readme, match, row)) << "README has no row for " << number;
    EXPECT_THAT(help, HasSubstr(number + "  " + match[1].str() + "\n"));
  }
}

}  // namespace
}  // namespace plumbline
