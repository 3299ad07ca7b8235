#include "engine/clock/deadline_timer.h"

#include <gtest/gtest.h>

#include <thread>

namespace plumbline {
namespace {

using Outcome = DeadlineTimer::Outcome;

constexpr TimeNs kMs = 1'000'000;
constexpr TimeNs kHour = 3600 * kNsPerSecond;

// With the sleep, with the spin alone, and with the sleep alone.
class DeadlineTimerTest : public testing::TestWithParam<TimeNs> {
 protected:
  const MonotonicClock clock_;
  DeadlineTimer timer_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Spins, DeadlineTimerTest,
                         testing::Values(DeadlineTimer::kDefaultSpinNs, kNsPerSecond, TimeNs{0}));

TEST_P(DeadlineTimerTest, NeverReturnsBeforeTheDeadline) {
  for (int i = 0; i < 20; ++i) {
    const TimeNs deadline_ns = clock_.NowNs() + kMs / 2;
    EXPECT_EQ(timer_.WaitUntil(deadline_ns), Outcome::kDeadline);
    EXPECT_GE(clock_.NowNs(), deadline_ns);
  }
}

TEST_P(DeadlineTimerTest, ADeadlineThatHasPassedDoesNotWait) {
  EXPECT_EQ(timer_.WaitUntil(0), Outcome::kDeadline);
  EXPECT_EQ(timer_.WaitUntil(clock_.NowNs() - kHour), Outcome::kDeadline);
}

TEST_P(DeadlineTimerTest, WakeBeforeTheWaitEndsItOnce) {
  timer_.Wake();
  timer_.Wake();
  EXPECT_EQ(timer_.WaitUntil(clock_.NowNs() + kHour), Outcome::kWoken);
  EXPECT_EQ(timer_.WaitUntil(clock_.NowNs() + kMs), Outcome::kDeadline);
}

TEST_P(DeadlineTimerTest, WakeFromAnotherThreadEndsALongWait) {
  std::jthread waker([this] { timer_.Wake(); });
  EXPECT_EQ(timer_.WaitUntil(clock_.NowNs() + kHour), Outcome::kWoken);
}

}  // namespace
}  // namespace plumbline
