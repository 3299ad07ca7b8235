#pragma once

#include <cstdint>

namespace plumbline {

// Nanoseconds on one monotonic clock. In real time that is CLOCK_MONOTONIC (system wide since boot, so stamps
// of different processes of one host compare); in virtual time it starts at 0.
using TimeNs = std::int64_t;

constexpr TimeNs kNsPerSecond = 1'000'000'000;

class Clock {
 public:
  virtual ~Clock() = default;
  // Thread-safe, never goes back.
  virtual TimeNs NowNs() const = 0;
};

class MonotonicClock final : public Clock {
 public:
  TimeNs NowNs() const override;
};

// Time that moves only when it is told to. One thread.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(TimeNs start = 0) : now_(start) {}
  TimeNs NowNs() const override { return now_; }
  // Going back is a bug of the caller and throws std::logic_error.
  void AdvanceTo(TimeNs time);

 private:
  TimeNs now_;
};

// A wall clock and a monotonic reading that belong together: the monotonic clock is read before and after the
// wall clock, and the pair with the narrowest bracket of a few tries is kept. `wall - middle` is the offset
// between the two clocks, known to within half the bracket; a difference between the pairs of a run's start
// and end shows that the wall clock was stepped.
struct ClockPair {
  double wall_s = 0;  // seconds since 1970
  double monotonic_before_s = 0;
  double monotonic_after_s = 0;

  double OffsetS() const { return wall_s - (monotonic_before_s + monotonic_after_s) / 2; }
  double ErrorS() const { return (monotonic_after_s - monotonic_before_s) / 2; }
};

ClockPair ReadClockPair();

}  // namespace plumbline
