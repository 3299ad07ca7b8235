#include "engine/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/base/error.h"

namespace plumbline {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void ThrowOutput(const std::string& path, int error) {
  throw Error(ExitCode::kInterrupted, path + ": cannot be written: " + std::strerror(error));
}

}  // namespace

std::string ReadFile(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) {
    ThrowBadInput({.file = path, .problem = std::string("cannot be read: ") + std::strerror(errno)});
  }
  if (S_ISDIR(info.st_mode)) ThrowBadInput({.file = path, .problem = "is a folder, a file is needed"});
  std::string text;
  text.reserve(static_cast<std::size_t>(info.st_size) + 1);
  char block[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.get(), block, sizeof block);
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      ThrowBadInput({.file = path, .problem = std::string("cannot be read: ") + std::strerror(errno)});
    }
    text.append(block, static_cast<std::size_t>(got));
  }
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  const std::string part = path + ".part";
  {
    Descriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) ThrowOutput(path, errno);
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t wrote = ::write(file.get(), bytes.data() + done, bytes.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        const int error = errno;
        ::unlink(part.c_str());
        ThrowOutput(path, error);
      }
      done += static_cast<std::size_t>(wrote);
    }
    if (::fsync(file.get()) != 0 && errno != EINVAL) {
      const int error = errno;
      ::unlink(part.c_str());
      ThrowOutput(path, error);
    }
  }
  if (::rename(part.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(part.c_str());
    ThrowOutput(path, error);
  }
}

void MakeFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error(ExitCode::kInterrupted, path + ": cannot be created: " + error.message());
}

}  // namespace plumbline
