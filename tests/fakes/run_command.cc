#include "tests/fakes/run_command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace plumbline {
namespace {

// An unnamed file that takes a stream of the child: unlike a pipe it never fills up.
class Capture {
 public:
  Capture() : file_(memfd_create("capture", MFD_CLOEXEC)) {}
  ~Capture() { close(file_); }
  int file() const { return file_; }
  std::string Text() const {
    std::string text(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
    const ssize_t got = pread(file_, text.data(), text.size(), 0);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return text;
  }

 private:
  int file_;
};

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

CommandOutcome RunCommand(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment) {
  const Capture out;
  const Capture err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.file(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.file(), 2);
  std::vector<std::string> variables = environment;  // the first of two of the same name counts
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments.front().c_str(), &actions, nullptr,
                                  Pointers(arguments).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  CommandOutcome outcome;
  if (failed != 0) {
    ADD_FAILURE() << arguments.front() << ": " << std::strerror(failed);
    outcome.code = 127;
    return outcome;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = out.Text();
  outcome.err = err.Text();
  return outcome;
}

}  // namespace plumbline
