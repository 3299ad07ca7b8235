#include "engine/process/guarded_child.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "engine/base/error.h"
#include "tests/fakes/temp_folder.h"

namespace plumbline {
namespace {

// Until the process has ended; false when it has not within a minute.
bool AwaitEnd(pid_t pid) {
  const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return errno == ESRCH;
  pollfd descriptor{fd, POLLIN, 0};
  const bool ended = ::poll(&descriptor, 1, 60'000) == 1;
  ::close(fd);
  return ended;
}

std::string ReadLine(int fd) {
  std::string line;
  char byte = 0;
  while (::read(fd, &byte, 1) == 1 && byte != '\n') line += byte;
  return line;
}

std::string AwaitEnded(GuardedChild& child) {
  pollfd descriptor{child.lifeline(), POLLIN, 0};
  ::poll(&descriptor, 1, 60'000);
  return child.Ended();
}

class GuardedChildTest : public testing::Test {
 protected:
  GuardedCommand Shell(const std::string& script) const {
    return {.program = "bash", .arguments = {"-c", script}, .log_path = folder_ / "child.log"};
  }

  const TempFolder folder_;
};

TEST_F(GuardedChildTest, TalksOverItsChannelAndWritesItsLog) {
  GuardedChild child(Shell("read -r line <&61; echo to-out; echo to-err >&2; echo \"got $line\" >&61"));
  EXPECT_EQ(child.Ended(), "");
  ASSERT_EQ(::send(child.channel(), "hello\n", 6, 0), 6);
  EXPECT_EQ(ReadLine(child.channel()), "got hello");
  EXPECT_EQ(AwaitEnded(child), "exit code 0");
  EXPECT_EQ(child.LogTail(), "to-out\nto-err\n");
  EXPECT_EQ(child.LogTail(8), "to-err\n");
}

TEST_F(GuardedChildTest, SaysHowItEnded) {
  GuardedChild exits(Shell("exit 3"));
  EXPECT_EQ(AwaitEnded(exits), "exit code 3");
  EXPECT_EQ(ReadLine(exits.channel()), "") << "the channel ends with the child";
  GuardedChild killed(Shell("kill -KILL $$"));
  EXPECT_EQ(AwaitEnded(killed), "signal 9 (Killed)");
}

TEST_F(GuardedChildTest, ProgramsThatCannotRunAreNamed) {
  GuardedCommand command = Shell("");
  command.program = "no-such-program-anywhere";
  try {
    GuardedChild child(command);
    FAIL() << "started " << command.program;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kEngineFailed);
    EXPECT_NE(std::string(error.what()).find(command.program), std::string::npos) << error.what();
  }
  command.program = "/dev/null";
  GuardedChild child(command);
  EXPECT_EQ(AwaitEnded(child), "it could not be started: Permission denied");
}

TEST_F(GuardedChildTest, StopLeavesNoGrandchildBehind) {
  // One in its group, one in a session of its own whose parent is gone already.
  GuardedChild child(Shell("sleep 1000 & echo $! >&61; (setsid sleep 1000 & echo $! >&61); wait"));
  const pid_t near = std::stoi(ReadLine(child.channel()));
  const pid_t far = std::stoi(ReadLine(child.channel()));
  EXPECT_EQ(::kill(near, 0), 0);
  EXPECT_EQ(::kill(far, 0), 0);
  child.Stop();
  EXPECT_EQ(::kill(near, 0), -1);
  EXPECT_EQ(::kill(far, 0), -1);
  EXPECT_EQ(child.Ended(), "signal 15 (Terminated)");
}

TEST_F(GuardedChildTest, WhoIgnoresTheTermIsKilled) {
  GuardedCommand command = Shell("trap '' TERM; echo ready >&61; while :; do read -t 100 -r _ <&61; done");
  command.grace = std::chrono::milliseconds(1);
  GuardedChild child(command);
  EXPECT_EQ(ReadLine(child.channel()), "ready");
  child.Stop();
  EXPECT_EQ(child.Ended(), "signal 9 (Killed)");
}

TEST_F(GuardedChildTest, OrphansOfAChildThatEndedAreEnded) {
  GuardedChild child(Shell("setsid sleep 1000 & echo $! >&61"));
  const pid_t orphan = std::stoi(ReadLine(child.channel()));
  EXPECT_TRUE(AwaitEnd(orphan));
  EXPECT_EQ(child.Ended(), "exit code 0");
}

TEST_F(GuardedChildTest, NothingOutlivesAnOwnerThatIsKilled) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    GuardedChild child(Shell("setsid sleep 1000 & echo $! >&61; wait"));
    const std::string pid = ReadLine(child.channel()) + "\n";
    [[maybe_unused]] const ssize_t wrote = ::write(pipe_ends[1], pid.data(), pid.size());
    while (true) ::pause();
  }
  const pid_t grandchild = std::stoi(ReadLine(pipe_ends[0]));
  ASSERT_EQ(::kill(grandchild, 0), 0);
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  ::waitpid(owner, nullptr, 0);
  EXPECT_TRUE(AwaitEnd(grandchild));
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

}  // namespace
}  // namespace plumbline
