#include "tools/progress_line.h"

#include <fmt/format.h>

#include <cmath>

namespace plumbline {
namespace {

constexpr double kPlainLineEveryS = 10;

}  // namespace

std::string FormatProgress(const ReplayProgress& progress) {
  std::string line =
      fmt::format("{}/{} requests, {:.1f} tokens/s", progress.done, progress.total, progress.tokens_per_s);
  if (progress.done < progress.total && progress.seconds_left) {
    line += fmt::format(", {:.0f} s left", std::ceil(*progress.seconds_left));
  }
  return line;
}

void ProgressLine::Show(const ReplayProgress& progress) {
  if (is_terminal_) {
    fmt::print(stream_, "\r{}\x1b[K", FormatProgress(progress));
    line_is_open_ = true;
  } else if (progress.elapsed_s >= next_plain_line_s_ || progress.done == progress.total) {
    while (next_plain_line_s_ <= progress.elapsed_s) next_plain_line_s_ += kPlainLineEveryS;
    fmt::print(stream_, "{}\n", FormatProgress(progress));
  }
  std::fflush(stream_);
}

void ProgressLine::Finish() {
  if (line_is_open_) fmt::print(stream_, "\n");
  line_is_open_ = false;
  std::fflush(stream_);
}

}  // namespace plumbline
