#include "tests/fakes/run_command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace plumbline {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

// An unnamed file that takes a stream of the child: unlike a pipe it never fills up.
class StartedCommand::Capture {
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

StartedCommand::StartedCommand(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& environment)
    : out_(std::make_unique<Capture>()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    ADD_FAILURE() << "pipe: " << std::strerror(errno);
    return;
  }
  err_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_->file(), 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  std::vector<std::string> variables = environment;  // the first of two of the same name counts
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  const int failed = posix_spawnp(&child_, arguments.front().c_str(), &actions, nullptr,
                                  Pointers(arguments).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    child_ = -1;
    ADD_FAILURE() << arguments.front() << ": " << std::strerror(failed);
  }
}

StartedCommand::~StartedCommand() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  if (err_ >= 0) close(err_);
}

bool StartedCommand::ReadSomeStderr() {
  char buffer[4096];
  ssize_t got = 0;
  do {
    got = read(err_, buffer, sizeof(buffer));
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  err_text_.append(buffer, static_cast<std::size_t>(got));
  return true;
}

bool StartedCommand::AwaitStderr(const std::string& text) {
  while (err_text_.find(text) == std::string::npos) {
    if (!ReadSomeStderr()) return false;
  }
  return true;
}

void StartedCommand::Signal(int number) {
  if (child_ > 0) kill(child_, number);
}

CommandOutcome StartedCommand::Wait() {
  CommandOutcome outcome;
  if (child_ < 0) {
    outcome.code = 127;
    return outcome;
  }
  while (ReadSomeStderr()) {
  }
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = out_->Text();
  outcome.err = err_text_;
  return outcome;
}

CommandOutcome RunCommand(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment) {
  return StartedCommand(arguments, environment).Wait();
}

}  // namespace plumbline
