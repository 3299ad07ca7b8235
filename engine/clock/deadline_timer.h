#pragma once

#include <atomic>

#include "engine/clock/clock.h"

namespace plumbline {

// Waits for absolute instants of CLOCK_MONOTONIC: sleeps on a timerfd until shortly before, then spins. A
// sleep alone is 25-60 us late on an idle core and up to 200 us on a virtual one; the spin takes that away
// for its share of a core, a quarter at 1,000 deadlines a second and nothing that matters at ten.
class DeadlineTimer {
 public:
  enum class Outcome { kDeadline, kWoken };

  static constexpr TimeNs kDefaultSpinNs = 250'000;

  // Throws std::system_error when the kernel has no descriptors left.
  explicit DeadlineTimer(TimeNs spin_ns = kDefaultSpinNs);
  ~DeadlineTimer();
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;

  // Returns at the deadline, never before it unless woken; at once for a deadline that has passed. One
  // thread.
  Outcome WaitUntil(TimeNs deadline_ns);

  // Ends the wait under way, or else the next one. Any thread, also a signal handler.
  void Wake() noexcept;

 private:
  bool TakeWakeup() noexcept;
  void SleepUntil(TimeNs time_ns);

  const TimeNs spin_ns_;
  int timer_fd_ = -1;
  int wake_fd_ = -1;
  std::atomic<bool> woken_{false};
};

}  // namespace plumbline
