#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/command.h"

namespace plumbline {

struct PlumbOutcome {
  int code;
  std::string out;
  std::string err;
};

// Runs `plumb ARGUMENTS` inside the test.
inline PlumbOutcome CallPlumb(const std::vector<std::string>& arguments) {
  Tools tools;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = RunPlumb(arguments, tools);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

}  // namespace plumbline
