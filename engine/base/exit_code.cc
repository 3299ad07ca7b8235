#include "engine/base/exit_code.h"

#include <algorithm>
#include <array>

namespace plumbline {

ExitCode Combine(std::span<const ExitCode> codes) {
  constexpr std::array kOrder = {ExitCode::kBadInput, ExitCode::kInterrupted,     ExitCode::kEngineFailed,
                                 ExitCode::kInvalid,  ExitCode::kNothingSelected, ExitCode::kRegressed,
                                 ExitCode::kPass,     ExitCode::kSkipped};
  for (ExitCode code : kOrder) {
    if (std::find(codes.begin(), codes.end(), code) != codes.end()) return code;
  }
  return ExitCode::kNothingSelected;
}

const char* Name(ExitCode code) {
  switch (code) {
    case ExitCode::kPass:
      return "pass";
    case ExitCode::kBadInput:
      return "bad input";
    case ExitCode::kNothingSelected:
      return "nothing selected";
    case ExitCode::kRegressed:
      return "regressed";
    case ExitCode::kInterrupted:
      return "interrupted";
    case ExitCode::kEngineFailed:
      return "engine failed";
    case ExitCode::kInvalid:
      return "invalid";
    case ExitCode::kSkipped:
      return "skipped";
  }
  return "unknown";
}

}  // namespace plumbline
