#include "engine/api/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "engine/base/error.h"
#include "tests/fakes/temp_folder.h"

namespace plumbline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

EngineKind Kind(const std::string& name) {
  return {.kind = name, .help = "", .check = nullptr, .boot = [](const EngineSpec&) { return nullptr; }};
}

Error Thrown(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  return Error(ExitCode::kPass, "nothing was thrown");
}

TEST(EngineRegistry, UnknownKindNamesTheKnownOnes) {
  EngineRegistry engines;
  engines.Register(Kind("b"));
  engines.Register(Kind("a"));
  const Error error = Thrown([&] { engines.Find("c"); });
  EXPECT_EQ(error.code(), ExitCode::kBadInput);
  EXPECT_THAT(error.what(), HasSubstr("accepted: a, b"));
}

TEST(EngineRegistry, ASecondKindOfTheSameNameIsABug) {
  EngineRegistry engines;
  engines.Register(Kind("a"));
  EXPECT_THROW(engines.Register(Kind("a")), std::logic_error);
}

TEST(EngineRegistry, TheSpecIsCheckedBeforeAnythingBoots) {
  EngineRegistry engines;
  bool booted = false;
  EngineKind picky = Kind("picky");
  picky.check = [](const EngineSpec&) { throw Error(ExitCode::kBadInput, "no"); };
  picky.boot = [&](const EngineSpec&) {
    booted = true;
    return nullptr;
  };
  engines.Register(picky);
  EngineSpec spec;
  spec.kind = "picky";
  EXPECT_EQ(Thrown([&] { engines.Boot(spec); }).code(), ExitCode::kBadInput);
  EXPECT_FALSE(booted);
}

TEST(EngineRegistry, PluginsAreListedByTheirFileNamesWithoutLoadingThem) {
  const TempFolder folder;
  folder.Write("libplumbline_other.so", "no shared object");
  folder.Write("libsomething.so", "");
  EngineRegistry engines;
  engines.Register(Kind("a"));
  engines.AddPluginFolder(folder.path());
  engines.AddPluginFolder("/nonexistent/folder");
  EXPECT_THAT(engines.Kinds(), ElementsAre("a", "other"));
}

TEST(EngineRegistry, AFileThatIsNoPluginFailsWithTheLoadersReason) {
  const TempFolder folder;
  const std::string path = folder.Write("libplumbline_other.so", "no shared object");
  EngineRegistry engines;
  engines.AddPluginFolder(folder.path());
  const Error error = Thrown([&] { engines.Find("other"); });
  EXPECT_EQ(error.code(), ExitCode::kEngineFailed);
  EXPECT_THAT(error.what(), HasSubstr(path));
}

TEST(EngineRegistry, AKindIsNeverAPath) {
  const TempFolder folder;
  folder.Write("libplumbline_x/y.so", "");
  EngineRegistry engines;
  engines.AddPluginFolder(folder.path());
  EXPECT_EQ(Thrown([&] { engines.Find("x/y"); }).code(), ExitCode::kBadInput);
}

}  // namespace
}  // namespace plumbline
