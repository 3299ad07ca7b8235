// How the tests of this build tree are registered: a selection that silently runs nothing, a skip that looks
// like a pass, two tests on one GPU, and a listing that starts engines are mistakes of the registration, not
// of a test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "engine/base/json.h"
#include "tests/fakes/run_command.h"

namespace plumbline {
namespace {

using testing::IsSubsetOf;

struct RegisteredTest {
  std::string name;
  std::string program;
  std::vector<std::string> labels;
  std::map<std::string, Json> properties;

  bool Has(const std::string& label) const {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  }
};

CommandOutcome Ctest(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {PLUMBLINE_CTEST, "--test-dir", PLUMBLINE_BINARY_DIR});
  return RunCommand(arguments);
}

const std::vector<RegisteredTest>& Registered() {
  static const std::vector<RegisteredTest> tests = [] {
    const Json json = ParseJson(Ctest({"--show-only=json-v1"}).out, "ctest");
    std::vector<RegisteredTest> found;
    for (const Json& entry : json.at("tests")) {
      RegisteredTest test{.name = entry.at("name"), .program = "", .labels = {}, .properties = {}};
      if (entry.contains("command")) test.program = entry.at("command").at(0);
      for (const Json& property : entry.at("properties")) {
        test.properties[property.at("name")] = property.at("value");
        if (property.at("name") == "LABELS")
          test.labels = property.at("value").get<std::vector<std::string>>();
      }
      found.push_back(std::move(test));
    }
    return found;
  }();
  return tests;
}

const std::set<std::string> kDeviceLabels = {"gpu", "vllm", "endpoint"};
const std::vector<std::string> kLabels = {"unit",     "cli",  "validate", "cpu",    "gpu", "vllm",
                                          "endpoint", "slow", "bench",    "timing", "fuzz"};

bool NeedsDevice(const RegisteredTest& test) {
  return std::any_of(test.labels.begin(), test.labels.end(),
                     [](const std::string& label) { return kDeviceLabels.contains(label); });
}

TEST(CtestRules, EveryTestIsBuiltLabelledAndBounded) {
  ASSERT_GT(Registered().size(), 50u);
  for (const RegisteredTest& test : Registered()) {
    if (test.name.ends_with("_NOT_BUILT")) continue;  // a partial build; ctest itself fails on it
    EXPECT_FALSE(test.labels.empty()) << test.name << " has no label: no job would run it";
    EXPECT_THAT(test.labels, IsSubsetOf(kLabels)) << test.name;
    EXPECT_TRUE(test.properties.contains("TIMEOUT")) << test.name << " could hang for as long as it likes";
  }
}

TEST(CtestRules, AnAbsentDeviceIsASkipAndNotAPass) {
  int device_tests = 0;
  for (const RegisteredTest& test : Registered()) {
    if (!NeedsDevice(test)) continue;
    ++device_tests;
    const bool by_code =
        test.properties.contains("SKIP_RETURN_CODE") && test.properties.at("SKIP_RETURN_CODE") == 77;
    EXPECT_TRUE(by_code || test.properties.contains("SKIP_REGULAR_EXPRESSION")) << test.name;
  }
  EXPECT_GT(device_tests, 0);
}

TEST(CtestRules, TestsThatUseAGpuAskCtestForIt) {
  for (const RegisteredTest& test : Registered()) {
    // The probe looks at devices without using them.
    if (!test.Has("gpu") || test.name == "gpu.device_probe") continue;
    EXPECT_TRUE(test.properties.contains("RESOURCE_GROUPS"))
        << test.name << " could share a GPU with another test";
  }
}

TEST(CtestRules, TestsOfTimeRunAlone) {
  for (const RegisteredTest& test : Registered()) {
    if (!test.Has("timing") && !test.Has("bench")) continue;
    EXPECT_TRUE(test.properties.contains("RUN_SERIAL")) << test.name << " would be timed beside another test";
  }
}

TEST(CtestRules, ASelectionOfNothingFails) {
  EXPECT_EQ(Ctest({"-L", "no_such_label", "--no-tests=error"}).code, 8);
  const Json presets = ReadJsonFile(PLUMBLINE_SOURCE_DIR "/CMakePresets.json");
  std::map<std::string, bool> strict;  // by preset; a preset is strict when the one that it inherits is
  for (const Json& preset : presets.at("testPresets")) {
    const bool own =
        preset.contains("execution") && preset.at("execution").value("noTestsAction", "") == "error";
    strict[preset.at("name")] = own || (preset.contains("inherits") && strict[preset.at("inherits")]);
    EXPECT_TRUE(strict[preset.at("name")]) << preset.at("name");
  }
  EXPECT_GE(strict.size(), 6u);
}

// Listing runs each program before every ctest call: it must name tests, and do nothing else.
TEST(CtestRules, ListingTestsNeedsNoDeviceAndWritesNothing) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("listing_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::set<std::string> programs;
  for (const RegisteredTest& test : Registered()) {
    if (test.program.ends_with("_test")) programs.insert(test.program);
  }
  EXPECT_GT(programs.size(), 5u);
  for (const std::string& program : programs) {
    const CommandOutcome outcome = RunCommand({"env", "-C", folder.string(), program, "--gtest_list_tests"},
                                              {"CUDA_VISIBLE_DEVICES=", "HOME=/nonexistent"});
    EXPECT_EQ(outcome.code, 0) << program << ": " << outcome.err;
    EXPECT_NE(outcome.out.find("\n  "), std::string::npos) << program << " lists no test";
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << program << " wrote a file while listing";
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace plumbline
