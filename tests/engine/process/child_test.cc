#include "engine/process/child.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/error.h"

namespace plumbline {
namespace {

using std::chrono::minutes;

ChildResult Shell(const std::string& script, std::string_view input = "",
                  std::chrono::milliseconds timeout = minutes(1)) {
  return RunChild("/bin/sh", {"-c", script}, input, timeout);
}

TEST(RunChild, GivesExitCodeAndBothStreams) {
  const ChildResult result = Shell("echo out; echo seen >&2; exit 7");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.stdout_tail, "out\n");
  EXPECT_EQ(result.stderr_tail, "seen\n");
  EXPECT_FALSE(result.ok());
  EXPECT_TRUE(Shell("exit 0").ok());
}

TEST(RunChild, FeedsStdin) {
  const std::string input(1 << 20, 'x');  // more than a pipe holds
  EXPECT_EQ(Shell("wc -c >&2", input).stderr_tail, "1048576\n");
  EXPECT_TRUE(Shell("exit 0", input).ok());  // never reads it
}

TEST(RunChild, ArgumentsAreNotInterpreted) {
  const ChildResult result =
      RunChild("/bin/sh", {"-c", "printf '%s' \"$1\" >&2", "sh", "$(exit 3); *"}, "", minutes(1));
  EXPECT_EQ(result.stderr_tail, "$(exit 3); *");
}

TEST(RunChild, KeepsTheTailOfALongStderr) {
  const ChildResult result = Shell("yes line | head -n 100000 >&2; echo end >&2");
  EXPECT_EQ(result.stderr_tail.size(), 4096u);
  EXPECT_EQ(result.stderr_tail.substr(4092), "end\n");
}

TEST(RunChild, NamesTheSignal) {
  const ChildResult result = Shell("kill -TERM $$");
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_FALSE(result.timed_out);
  EXPECT_FALSE(result.ok());
}

TEST(RunChild, KillsWhatTakesTooLong) {
  const ChildResult result = Shell("exec sleep 600", "", std::chrono::milliseconds(20));
  EXPECT_TRUE(result.timed_out);
  EXPECT_FALSE(result.ok());
}

TEST(RunChild, AProgramThatIsNotThereIsAnError) {
  try {
    RunChild("/nonexistent/program", {}, "", minutes(1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kEngineFailed);
    EXPECT_NE(std::string(error.what()).find("/nonexistent/program"), std::string::npos);
  }
}

TEST(RunChild, SeveralThreadsAtOnce) {
  std::vector<int> codes(4, -1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&codes, i] {
      codes[static_cast<std::size_t>(i)] = Shell("exit " + std::to_string(i + 10)).exit_code;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(codes, (std::vector<int>{10, 11, 12, 13}));
}

TEST(FindProgram, LooksInPath) {
  EXPECT_TRUE(FindProgram("sh"));
  EXPECT_FALSE(FindProgram("no-such-program-as-this"));
  EXPECT_EQ(FindProgram("/bin/sh"), "/bin/sh");
}

}  // namespace
}  // namespace plumbline
