#include "engine/process/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "engine/process/descendants.h"

namespace plumbline {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A process that even SIGKILL does not end hangs in the kernel; waiting longer helps nobody.
constexpr std::chrono::seconds kLongestWaitAfterKill{10};

class Guard {
 public:
  explicit Guard(std::chrono::milliseconds grace) : grace_(grace) {
    ::setsid();
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    sigset_t caught;
    sigemptyset(&caught);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&caught, number);
    sigprocmask(SIG_BLOCK, &caught, &signals_before_);
    signal_fd_ = ::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  int Run(const std::vector<std::string>& command) {
    if (!Start(command)) return 127;
    // The channel is the program's alone: its end must be seen when the program ends.
    ::close(kChildChannelFd);
    while (ReapChildren()) {
      if (main_ended_) BeginEnding();
      WaitForSomething();
      if (!ending_ || SteadyClock::now() < kill_at_) continue;
      if (SteadyClock::now() > kill_at_ + kLongestWaitAfterKill) return 1;
      SignalAll(SIGKILL);
    }
    return 0;
  }

 private:
  bool Start(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    int failure[2];
    if (::pipe2(failure, O_CLOEXEC) != 0) return Tell("failed", errno), false;
    main_ = ::fork();
    if (main_ < 0) return Tell("failed", errno), false;
    if (main_ == 0) {
      ::setpgid(0, 0);
      sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
      ::close(kGuardLifelineFd);
      ::execvp(arguments[0], arguments.data());
      const int error = errno;
      [[maybe_unused]] const ssize_t wrote = ::write(failure[1], &error, sizeof error);
      ::_exit(127);
    }
    ::close(failure[1]);
    int error = 0;
    const bool failed = ::read(failure[0], &error, sizeof error) == sizeof error;
    ::close(failure[0]);
    if (failed) {
      ::waitpid(main_, nullptr, 0);
      Tell("failed", error);
    }
    return !failed;
  }

  // False when no child, own or adopted, is left.
  bool ReapChildren() {
    while (true) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid == 0) return true;
      if (pid < 0) return errno == EINTR;
      if (pid != main_) continue;
      main_ended_ = true;
      if (WIFSIGNALED(status)) {
        Tell("signalled", WTERMSIG(status));
      } else {
        Tell("exited", WEXITSTATUS(status));
      }
    }
  }

  void WaitForSomething() {
    pollfd descriptors[] = {{signal_fd_, POLLIN, 0}, {owner_gone_ ? -1 : kGuardLifelineFd, POLLIN, 0}};
    // While ending, look again soon: a grandchild's end sends no signal here until it is adopted.
    ::poll(descriptors, 2, ending_ ? 50 : -1);
    signalfd_siginfo signal{};
    while (::read(signal_fd_, &signal, sizeof signal) == sizeof signal) {
      if (signal.ssi_signo != SIGCHLD) BeginEnding();
    }
    if (owner_gone_ || (descriptors[1].revents & (POLLIN | POLLHUP | POLLERR)) == 0) return;
    char ignored[64];
    const ssize_t got = ::read(kGuardLifelineFd, ignored, sizeof ignored);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
      owner_gone_ = true;
      BeginEnding();
    }
  }

  void BeginEnding() {
    if (ending_) return;
    ending_ = true;
    kill_at_ = SteadyClock::now() + grace_;
    SignalAll(SIGTERM);
  }

  void SignalAll(int number) const {
    for (const pid_t pid : Descendants(::getpid())) ::kill(pid, number);
  }

  void Tell(const char* what, int number) const {
    const std::string line = std::string(what) + " " + std::to_string(number) + "\n";
    ::send(kGuardLifelineFd, line.data(), line.size(), MSG_NOSIGNAL);
  }

  const std::chrono::milliseconds grace_;
  sigset_t signals_before_{};
  int signal_fd_ = -1;
  pid_t main_ = -1;
  bool main_ended_ = false;
  bool owner_gone_ = false;
  bool ending_ = false;
  SteadyClock::time_point kill_at_;
};

}  // namespace

int RunGuard(const std::vector<std::string>& command, std::chrono::milliseconds grace) {
  return Guard(grace).Run(command);
}

}  // namespace plumbline
