#pragma once

#include <span>

namespace plumbline {

// How every program of the project ends. The table in README.md is this list; nothing below main calls exit.
enum class ExitCode : int {
  kPass = 0,
  kBadInput = 1,         // bad usage, or an input file that cannot be used
  kNothingSelected = 2,  // a filter or a label that matches nothing
  kRegressed = 3,        // a gated metric lies outside its tolerance
  kInterrupted = 4,      // stopped by a signal, or the output could not be written
  kEngineFailed = 5,     // the engine did not start, died or hung
  kInvalid = 6,          // the run cannot be compared; a golden is missing or stale; compare is undecided
  kSkipped = 77,         // a device or an engine is absent
};

// The code of a program that ran several examples: the first of 1, 4, 5, 6, 3, 0 that occurs; 77 only if
// nothing ran. An empty list is kNothingSelected.
ExitCode Combine(std::span<const ExitCode> codes);

// "pass", "bad input", ...: one or two words for messages.
const char* Name(ExitCode code);

}  // namespace plumbline
