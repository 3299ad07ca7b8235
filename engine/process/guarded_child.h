#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace plumbline {

struct GuardedCommand {
  std::string program;  // from PATH, or with a slash
  std::vector<std::string> arguments;
  std::string log_path;  // its stdout and stderr; made anew
  // Between SIGTERM and SIGKILL when it is told to end.
  std::chrono::milliseconds grace{5000};
};

// A program with children of its own that must not outlive this process, run by plumb_guard, which lies
// beside this program. It has a private socket to us as descriptor kChildChannelFd, the caller's environment
// unchanged, /dev/null as stdin, and a log file as stdout and stderr.
//
// Threads: one, except that Ended may be called from any. Throws Error(kEngineFailed) when it cannot be
// started.
class GuardedChild {
 public:
  explicit GuardedChild(const GuardedCommand& command);
  ~GuardedChild();  // Stop
  GuardedChild(const GuardedChild&) = delete;
  GuardedChild& operator=(const GuardedChild&) = delete;

  // Our end of the socket (SOCK_STREAM, blocking). Reads end when the child and whoever inherited the other
  // end are gone.
  int channel() const;

  // Our end of the line to the guard: readable when the child has ended.
  int lifeline() const;

  // "exit code 1", "signal 9 (Killed)"; empty while it runs. Reads the lifeline; never waits.
  std::string Ended();

  // The last bytes of the log, in whole lines.
  std::string LogTail(std::size_t bytes = 2000) const;

  // Ends the child and everything that descends from it: SIGTERM, after the grace SIGKILL. Returns when
  // nothing is left. Idempotent.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline
