#pragma once

#include <cstdio>
#include <string>

#include "fixtures/replay/replayer.h"

namespace plumbline {

// "12/300 requests, 845.2 tokens/s, 34 s left".
std::string FormatProgress(const ReplayProgress& progress);

// Shows how far a replay has come: on a terminal one line that is written over, otherwise a plain line every
// ten seconds and one at the end.
class ProgressLine {
 public:
  ProgressLine(std::FILE* stream, bool is_terminal) : stream_(stream), is_terminal_(is_terminal) {}

  void Show(const ReplayProgress& progress);
  // Leaves the terminal on a new line, also when not all requests were done.
  void Finish();

 private:
  std::FILE* stream_;
  bool is_terminal_;
  bool line_is_open_ = false;
  double next_plain_line_s_ = 10;
};

}  // namespace plumbline
