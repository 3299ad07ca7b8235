#pragma once

#include <string>
#include <vector>

namespace plumbline {

struct CommandOutcome {
  int code = 0;  // exit status; 128 + signal where a signal ended it
  std::string out;
  std::string err;
};

// Runs a program to its end with the given arguments, no shell between, stdin empty. `environment` ("A=b") is
// added to the caller's. Fails the calling test when the program cannot be started.
CommandOutcome RunCommand(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment = {});

}  // namespace plumbline
