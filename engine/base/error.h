#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "engine/base/exit_code.h"

namespace plumbline {

// The one exception type of the project. Libraries throw it at their edge; main prints what() and returns
// code().
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// A value that cannot be used, and everything the reader needs to mend it. Empty members are left out of the
// text.
struct BadInput {
  std::string file{};
  std::int64_t line = 0;   // physical, from 1; 0 = not a line of a file
  std::string field{};     // "kv_cache.block_size", "--dtype"
  std::string value{};     // as it was written; shortened to 80 characters
  std::string problem{};   // "must be a positive integer"
  std::string accepted{};  // "float32, bfloat16"
};

// `file:line: field: problem (got "value"; accepted: ...)`.
std::string Describe(const BadInput& bad);

[[noreturn]] void ThrowBadInput(const BadInput& bad);

}  // namespace plumbline
