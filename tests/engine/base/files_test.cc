#include "engine/base/files.h"

#include <gtest/gtest.h>
#include <filesystem>

#include "engine/base/error.h"

namespace plumbline {
namespace {

std::string Fresh(const std::string& name) {
  const std::string folder = testing::TempDir() + "/files_test_" + name;
  std::filesystem::remove_all(folder);
  MakeFolders(folder);
  return folder;
}

TEST(Files, RoundTripKeepsEveryByte) {
  const std::string path = Fresh("round") + "/a";
  const std::string bytes("a\0b\r\n", 5);
  WriteFileAtomically(path, bytes);
  EXPECT_EQ(ReadFile(path), bytes);
}

TEST(Files, ReplacingLeavesNoPart) {
  const std::string folder = Fresh("replace");
  WriteFileAtomically(folder + "/a", "old");
  WriteFileAtomically(folder + "/a", "new");
  EXPECT_EQ(ReadFile(folder + "/a"), "new");
  EXPECT_FALSE(std::filesystem::exists(folder + "/a.part"));
}

TEST(Files, FolderIsNotAFile) {
  try {
    ReadFile(Fresh("folder"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    EXPECT_NE(std::string(error.what()).find("folder"), std::string::npos);
  }
}

TEST(Files, UnwritableOutputIsItsOwnKindOfFailure) {
  try {
    WriteFileAtomically("/nonexistent/folder/a", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kInterrupted);
  }
}

TEST(Files, PathBelowAFileIsReported) {
  EXPECT_THROW(WriteFileAtomically("/dev/null/x", "y"), Error);
}

}  // namespace
}  // namespace plumbline
