#include "engine/process/guarded_child.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/optional.hpp>  // Boost 1.81's Process v2 uses it without including it
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>

#include "engine/base/error.h"
#include "engine/process/child.h"
#include "engine/process/guard.h"

namespace plumbline {
namespace {

namespace process = boost::process::v2;

// Above the numbers that the guard's own descriptors get, so that handing one on never closes another.
constexpr int kLowestOwnFd = 80;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void Reset(int fd) {
    Close();
    fd_ = fd;
  }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

[[noreturn]] void Fail(const std::string& what) {
  throw Error(ExitCode::kEngineFailed, what + ": " + std::strerror(errno));
}

void MakePair(Descriptor& ours, Descriptor& theirs) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) Fail("a socket pair cannot be made");
  const Descriptor low(pair[1]);
  ours.Reset(pair[0]);
  theirs.Reset(::fcntl(pair[1], F_DUPFD_CLOEXEC, kLowestOwnFd));
  if (theirs.get() < 0) Fail("a socket pair cannot be made");
}

// An initialiser of Process v2: the child has `fd` as `target`. Boost 1.81's own posix::bind_fd lacks a
// return in on_setup, and crashes.
struct HandOn {
  int target;
  int fd;

  template <typename Launcher>
  boost::system::error_code on_setup(Launcher& launcher, const std::filesystem::path&, const char* const*) {
    launcher.fd_whitelist.push_back(target);
    return {};
  }
  template <typename Launcher>
  boost::system::error_code on_exec_setup(Launcher&, const std::filesystem::path&, const char* const*) {
    if (::dup2(fd, target) < 0) return {errno, boost::system::system_category()};
    return {};
  }
};

std::string GuardProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string guard = (self.parent_path() / "plumb_guard").string();
  if (error || !std::filesystem::exists(guard, error)) {
    throw Error(ExitCode::kEngineFailed, "plumb_guard does not lie beside this program (" + guard + ")");
  }
  return guard;
}

// "exited 3", "signalled 9", "failed 2" as the user should read it.
std::string InWords(const std::string& line) {
  const std::size_t blank = line.find(' ');
  int number = 0;
  if (blank != std::string::npos) {
    std::from_chars(line.data() + blank + 1, line.data() + line.size(), number);
  }
  const std::string word = line.substr(0, blank);
  if (word == "signalled") return "signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
  if (word == "failed") return std::string("it could not be started: ") + std::strerror(number);
  return "exit code " + std::to_string(number);
}

}  // namespace

class GuardedChild::Impl {
 public:
  explicit Impl(const GuardedCommand& command) : log_path_(command.log_path) {
    const std::optional<std::string> program = FindProgram(command.program);
    if (!program) throw Error(ExitCode::kEngineFailed, command.program + ": there is no such program");
    Descriptor their_lifeline;
    Descriptor their_channel;
    MakePair(lifeline_, their_lifeline);
    MakePair(channel_, their_channel);
    const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Descriptor log(::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (null.get() < 0) Fail("/dev/null cannot be opened");
    if (log.get() < 0) Fail(log_path_ + " cannot be written");
    std::vector<std::string> arguments = {std::to_string(command.grace.count()), *program};
    arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
    const std::string guard = GuardProgram();
    try {
      guard_.emplace(context_, guard, arguments, process::process_stdio{null.get(), log.get(), log.get()},
                     HandOn{kGuardLifelineFd, their_lifeline.get()},
                     HandOn{kChildChannelFd, their_channel.get()});
    } catch (const boost::system::system_error& error) {
      throw Error(ExitCode::kEngineFailed, guard + ": cannot be run: " + error.code().message());
    }
  }

  ~Impl() { Stop(); }

  int channel() const { return channel_.get(); }
  int lifeline() const { return lifeline_.get(); }

  std::string Ended() {
    const std::scoped_lock lock(mutex_);
    char bytes[64];
    ssize_t got = 0;
    while ((got = ::recv(lifeline_.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
      told_.append(bytes, static_cast<std::size_t>(got));
    }
    const std::size_t line_end = told_.find('\n');
    if (line_end != std::string::npos) return InWords(told_.substr(0, line_end));
    return got == 0 ? "its guard is gone" : "";
  }

  std::string LogTail(std::size_t bytes) const {
    std::ifstream file(log_path_, std::ios::binary | std::ios::ate);
    if (!file) return "";
    const auto size = static_cast<std::size_t>(file.tellg());
    std::string tail(std::min(size, bytes), '\0');
    file.seekg(static_cast<std::streamoff>(size - tail.size()));
    file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
    const std::size_t line = size > tail.size() ? tail.find('\n') : std::string::npos;
    if (line != std::string::npos && line + 1 < tail.size()) tail.erase(0, line + 1);
    return tail;
  }

  void Stop() {
    if (!guard_) return;
    // Half of it: what the guard still has to say can be read later.
    ::shutdown(lifeline_.get(), SHUT_WR);
    boost::system::error_code error;
    guard_->wait(error);
    guard_.reset();
  }

 private:
  const std::string log_path_;
  Descriptor lifeline_;
  Descriptor channel_;
  boost::asio::io_context context_;
  std::optional<process::process> guard_;
  std::mutex mutex_;
  std::string told_;
};

GuardedChild::GuardedChild(const GuardedCommand& command) : impl_(std::make_unique<Impl>(command)) {}
GuardedChild::~GuardedChild() = default;
int GuardedChild::channel() const {
  return impl_->channel();
}
int GuardedChild::lifeline() const {
  return impl_->lifeline();
}
std::string GuardedChild::Ended() {
  return impl_->Ended();
}
std::string GuardedChild::LogTail(std::size_t bytes) const {
  return impl_->LogTail(bytes);
}
void GuardedChild::Stop() {
  impl_->Stop();
}

}  // namespace plumbline
