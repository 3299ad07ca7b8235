#include "engine/clock/clock.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

TEST(MonotonicClock, NeverGoesBack) {
  const MonotonicClock clock;
  TimeNs last = clock.NowNs();
  for (int i = 0; i < 1000; ++i) {
    const TimeNs now = clock.NowNs();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(VirtualClock, MovesOnlyWhenTold) {
  VirtualClock clock(5);
  EXPECT_EQ(clock.NowNs(), 5);
  clock.AdvanceTo(9);
  EXPECT_EQ(clock.NowNs(), 9);
}

TEST(VirtualClock, RefusesToGoBack) {
  VirtualClock clock(5);
  EXPECT_THROW(clock.AdvanceTo(4), std::logic_error);
}

TEST(ClockPair, BracketsTheWallClock) {
  const ClockPair pair = ReadClockPair();
  EXPECT_GT(pair.wall_s, 1.6e9);
  EXPECT_LE(pair.monotonic_before_s, pair.monotonic_after_s);
  EXPECT_GE(pair.ErrorS(), 0.0);
}

}  // namespace
}  // namespace plumbline
