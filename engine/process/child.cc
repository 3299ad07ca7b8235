#include "engine/process/child.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/optional.hpp>  // Boost 1.81's Process v2 uses it without including it
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "engine/base/error.h"

namespace plumbline {
namespace {

namespace process = boost::process::v2;

constexpr off_t kStderrTailBytes = 4096;
constexpr off_t kStdoutTailBytes = 65536;

// A file in memory that stands for one of the child's streams. Unlike a pipe it cannot block either side, and
// a child that dies before it has read everything raises no SIGPIPE here.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {
    if (fd_ < 0) Fail();
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }

  void Fill(std::string_view bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t wrote = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) Fail();
      done += static_cast<std::size_t>(wrote);
    }
    ::lseek(fd_, 0, SEEK_SET);
  }

  std::string Tail(off_t bytes) const {
    const off_t size = ::lseek(fd_, 0, SEEK_END);
    const off_t start = std::max<off_t>(0, size - bytes);
    std::string tail(static_cast<std::size_t>(size - start), '\0');
    const ssize_t got = ::pread(fd_, tail.data(), tail.size(), start);
    tail.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    return tail;
  }

 private:
  [[noreturn]] static void Fail() {
    throw Error(ExitCode::kEngineFailed,
                std::string("a child's stream cannot be made: ") + std::strerror(errno));
  }

  int fd_;
};

}  // namespace

std::optional<std::string> FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = (folder.empty() ? "." : folder) + "/" + name;
    std::error_code error;
    if (std::filesystem::is_regular_file(program, error) && ::access(program.c_str(), X_OK) == 0)
      return program;
  }
  return std::nullopt;
}

ChildResult RunChild(const std::string& program, const std::vector<std::string>& arguments,
                     std::string_view input, std::chrono::milliseconds timeout) {
  MemoryFile in("stdin");
  in.Fill(input);
  MemoryFile out("stdout");
  MemoryFile err("stderr");

  boost::asio::io_context context;
  ChildResult result;
  try {
    process::process child(context, program, arguments, process::process_stdio{in.fd(), out.fd(), err.fd()});
    boost::asio::steady_timer timer(context, timeout);
    boost::system::error_code wait_error;
    child.async_wait([&](const boost::system::error_code& error, int) {
      wait_error = error;
      timer.cancel();
    });
    timer.async_wait([&](const boost::system::error_code& error) {
      if (error) return;
      result.timed_out = true;
      boost::system::error_code ignored;  // it may have ended by itself just now
      child.terminate(ignored);
    });
    context.run();
    if (wait_error && !result.timed_out) throw boost::system::system_error(wait_error);
    const int status = static_cast<int>(child.native_exit_code());
    if (WIFSIGNALED(status)) {
      result.signal = WTERMSIG(status);
    } else {
      result.exit_code = WEXITSTATUS(status);
    }
  } catch (const boost::system::system_error& error) {
    throw Error(ExitCode::kEngineFailed, program + ": cannot be run: " + error.code().message());
  }
  result.stderr_tail = err.Tail(kStderrTailBytes);
  result.stdout_tail = out.Tail(kStdoutTailBytes);
  return result;
}

}  // namespace plumbline
