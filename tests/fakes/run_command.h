#pragma once

#include <sys/types.h>
#include <memory>
#include <string>
#include <vector>

namespace plumbline {

struct CommandOutcome {
  int code = 0;  // exit status; 128 + signal where a signal ended it
  std::string out;
  std::string err;
};

// A program under way: no shell between, stdin empty. `environment` ("A=b") is added to the caller's. Fails
// the calling test when the program cannot be started.
class StartedCommand {
 public:
  explicit StartedCommand(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment = {});
  ~StartedCommand();  // kills what has not ended
  StartedCommand(const StartedCommand&) = delete;
  StartedCommand& operator=(const StartedCommand&) = delete;

  // Blocks until the program has written `text` to stderr; false when it ended before.
  bool AwaitStderr(const std::string& text);
  void Signal(int number);
  CommandOutcome Wait();

 private:
  class Capture;
  bool ReadSomeStderr();

  pid_t child_ = -1;
  std::unique_ptr<Capture> out_;
  int err_ = -1;  // read end of a pipe
  std::string err_text_;
};

// Runs a program to its end.
CommandOutcome RunCommand(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment = {});

}  // namespace plumbline
