#include "engine/clock/deadline_timer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace plumbline {
namespace {

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

DeadlineTimer::DeadlineTimer(TimeNs spin_ns) : spin_ns_(spin_ns) {
  timer_fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (timer_fd_ < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) {
    const int error = errno;
    ::close(timer_fd_);
    throw std::system_error(error, std::generic_category(), "eventfd");
  }
}

DeadlineTimer::~DeadlineTimer() {
  ::close(timer_fd_);
  ::close(wake_fd_);
}

DeadlineTimer::Outcome DeadlineTimer::WaitUntil(TimeNs deadline_ns) {
  const MonotonicClock clock;
  while (true) {
    if (TakeWakeup()) return Outcome::kWoken;
    const TimeNs left_ns = deadline_ns - clock.NowNs();
    if (left_ns <= 0) return Outcome::kDeadline;
    if (left_ns > spin_ns_) {
      SleepUntil(deadline_ns - spin_ns_);
    } else {
      Relax();
    }
  }
}

void DeadlineTimer::Wake() noexcept {
  woken_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the sleeper is awake already.
  [[maybe_unused]] const ssize_t wrote = ::write(wake_fd_, &one, sizeof one);
}

bool DeadlineTimer::TakeWakeup() noexcept {
  if (!woken_.load(std::memory_order_relaxed)) return false;
  // The descriptor first: a Wake that comes between the two leaves both set and ends the next wait.
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_fd_, &count, sizeof count);
  return woken_.exchange(false, std::memory_order_acq_rel);
}

void DeadlineTimer::SleepUntil(TimeNs time_ns) {
  itimerspec when{};
  when.it_value.tv_sec = time_ns / kNsPerSecond;
  when.it_value.tv_nsec = time_ns % kNsPerSecond;
  ::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
  pollfd descriptors[] = {{timer_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  ::poll(descriptors, 2, -1);  // EINTR: the caller looks at the clock again
}

}  // namespace plumbline
