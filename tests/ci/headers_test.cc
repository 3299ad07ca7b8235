// Every header compiles alone. Most prove it while building: a source that includes its header before
// anything else does not compile unless the header stands alone. Only the others are given to the compiler
// here.
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <map>

#include "tests/ci/source_tree.h"
#include "tests/fakes/run_command.h"

namespace plumbline {
namespace {

TEST(Headers, CompileAlone) {
  std::map<std::string, bool> proven;  // by being some source's first include
  const std::vector<SourceFile> sources = ReadSources({"engine", "fixtures", "suites", "tools", "tests"});
  for (const SourceFile& source : sources) {
    if (source.path.ends_with(".cc") && !source.includes.empty() && !source.includes.front().angled) {
      proven[source.includes.front().target] = true;
    }
  }
  std::size_t headers = 0;
  for (const SourceFile& source : sources) {
    if (!source.path.ends_with(".h") || source.path.starts_with("tests/")) continue;
    ++headers;
    // Parts of a kernel that are compiled once for each instruction set come with that set's flags.
    if (proven.contains(source.path) || source.path.starts_with("engine/kernels/")) continue;
    const CommandOutcome outcome =
        RunCommand({PLUMBLINE_CXX_COMPILER, "-std=c++20", "-fsyntax-only", "-x", "c++",
                    "-I" PLUMBLINE_SOURCE_DIR, std::string(PLUMBLINE_SOURCE_DIR) + "/" + source.path});
    EXPECT_EQ(outcome.code, 0) << source.path << " does not compile alone:\n" << outcome.err;
  }
  EXPECT_GT(headers, 30u);
}

TEST(Headers, AllHaveOneGuard) {
  for (const SourceFile& source : ReadSources({"engine", "fixtures", "suites", "tools", "tests"})) {
    if (!source.path.ends_with(".h")) continue;
    const CommandOutcome outcome =
        RunCommand({"grep", "-c", "^#pragma once$", std::string(PLUMBLINE_SOURCE_DIR) + "/" + source.path});
    EXPECT_EQ(outcome.out, "1\n") << source.path;
  }
}

}  // namespace
}  // namespace plumbline
