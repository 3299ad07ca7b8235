#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "engine/process/guarded_child.h"
#include "engine/vllm/frame.h"

namespace plumbline {

// The worker process and the socket to it. Send is for one thread at a time and never waits for the worker: a
// thread of the link's own writes. Receive is for one thread.
class WorkerLink {
 public:
  explicit WorkerLink(const GuardedCommand& command);
  ~WorkerLink();
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  void Send(std::string frame);

  // The next message. Throws Error(kEngineFailed) when the worker is gone, with how it ended and the last
  // lines of its log, and when nothing came until `timeout`, saying what was `awaited`.
  Frame Receive(std::optional<std::chrono::milliseconds> timeout, const std::string& awaited);

  // Ends the process and whatever it started. Idempotent.
  void Stop();

 private:
  void Write();
  [[noreturn]] void ThrowGone();

  GuardedChild child_;
  FrameReader frames_;

  std::mutex mutex_;
  std::condition_variable wake_writer_;
  std::deque<std::string> to_write_;
  bool closing_ = false;
  std::thread writer_;
};

}  // namespace plumbline
