#include "engine/clock/clock.h"

#include <ctime>
#include <stdexcept>

namespace plumbline {
namespace {

TimeNs Read(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<TimeNs>(now.tv_sec) * kNsPerSecond + now.tv_nsec;
}

}  // namespace

TimeNs MonotonicClock::NowNs() const {
  return Read(CLOCK_MONOTONIC);
}

void VirtualClock::AdvanceTo(TimeNs time) {
  if (time < now_) throw std::logic_error("virtual time cannot go back");
  now_ = time;
}

ClockPair ReadClockPair() {
  constexpr int kTries = 16;
  ClockPair best;
  TimeNs narrowest = -1;
  for (int i = 0; i < kTries; ++i) {
    const TimeNs before = Read(CLOCK_MONOTONIC);
    const TimeNs wall = Read(CLOCK_REALTIME);
    const TimeNs after = Read(CLOCK_MONOTONIC);
    if (narrowest >= 0 && after - before >= narrowest) continue;
    narrowest = after - before;
    best = {.wall_s = static_cast<double>(wall) / kNsPerSecond,
            .monotonic_before_s = static_cast<double>(before) / kNsPerSecond,
            .monotonic_after_s = static_cast<double>(after) / kNsPerSecond};
  }
  return best;
}

}  // namespace plumbline
