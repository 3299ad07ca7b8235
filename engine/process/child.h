#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

struct ChildResult {
  int exit_code = 0;        // meaningless when a signal or the time-out ended it
  int signal = 0;           // that ended it; 0 = it exited
  bool timed_out = false;   // it was killed because it took too long
  std::string stderr_tail;  // the last 4,096 bytes of what it wrote there
  std::string stdout_tail;  // the last 65,536 bytes

  bool ok() const { return exit_code == 0 && signal == 0 && !timed_out; }
};

// The program's path from PATH; absent when it is not there. A name with a slash is taken as it is.
std::optional<std::string> FindProgram(const std::string& name);

// Runs a program to its end, without a shell, and waits for it: `input` on its stdin, stdout and
// stderr caught. Killed after `timeout`. Thread-safe. Throws Error(kEngineFailed) naming the program when it
// cannot be started.
ChildResult RunChild(const std::string& program, const std::vector<std::string>& arguments,
                     std::string_view input, std::chrono::milliseconds timeout);

}  // namespace plumbline
