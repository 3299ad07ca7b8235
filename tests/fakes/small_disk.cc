#include "tests/fakes/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <exception>

namespace plumbline {
namespace {

constexpr int kNoMount = 77;

bool WriteText(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return done;
}

// Mounts of this process are its own from here on. The user keeps its own id inside the user namespace:
// without a mapping no file could be made.
bool EnterNamespaces() {
  const std::string uid = std::to_string(::getuid());
  const std::string gid = std::to_string(::getgid());
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (!WriteText("/proc/self/setgroups", "deny") ||
        !WriteText("/proc/self/uid_map", uid + " " + uid + " 1") ||
        !WriteText("/proc/self/gid_map", gid + " " + gid + " 1")) {
      return false;
    }
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

int Child(const std::string& folder, std::size_t bytes, const std::function<int()>& body) {
  const std::string options = "size=" + std::to_string(bytes);
  if (!EnterNamespaces() || ::mount("tmpfs", folder.c_str(), "tmpfs", 0, options.c_str()) != 0) {
    return kNoMount;
  }
  try {
    return body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "on the small disk: %s\n", error.what());
    return 1;
  }
}

}  // namespace

std::optional<int> RunOnSmallDisk(const std::string& folder, std::size_t bytes,
                                  const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int code = Child(folder, bytes, body);
    std::fflush(nullptr);
    ::_exit(code);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return std::nullopt;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code == kNoMount ? std::nullopt : std::optional(code);
}

}  // namespace plumbline
