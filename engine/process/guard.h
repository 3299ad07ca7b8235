#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace plumbline {

// The descriptors that a guarded child and its guard inherit, by number.
constexpr int kGuardLifelineFd = 60;  // the guard's end of the line to its owner
constexpr int kChildChannelFd = 61;   // the child's end of the channel to the owner

// Runs a program and outlives its owner, so that nothing of the program is left behind however the owner
// ends: a parent-death signal reaches only direct children, and an engine has grandchildren. A session of its
// own and child subreaper: whatever loses its parent becomes the guard's. When the lifeline closes, on
// SIGTERM, or when the program has ended by itself, everything that descends from the guard gets SIGTERM and,
// after `grace`, SIGKILL.
//
// Tells the owner on the lifeline, one line: "exited CODE", "signalled NUMBER" or "failed ERRNO" (the program
// could not be started). Returns the process's exit status when no descendant is left.
int RunGuard(const std::vector<std::string>& command, std::chrono::milliseconds grace);

}  // namespace plumbline
