#include "engine/vllm/worker_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/error.h"

namespace plumbline {
namespace {

constexpr std::size_t kReadBytes = 1u << 18;
// A worker that ended may still have said why: its channel is read to the end first.
constexpr int kLastWordsMs = 500;

}  // namespace

WorkerLink::WorkerLink(const GuardedCommand& command) : child_(command), writer_([this] { Write(); }) {}

WorkerLink::~WorkerLink() {
  Stop();
}

void WorkerLink::Send(std::string frame) {
  const std::scoped_lock lock(mutex_);
  if (closing_) return;
  to_write_.push_back(std::move(frame));
  wake_writer_.notify_one();
}

void WorkerLink::Write() {
  while (true) {
    std::string bytes;
    {
      std::unique_lock lock(mutex_);
      wake_writer_.wait(lock, [this] { return closing_ || !to_write_.empty(); });
      if (to_write_.empty()) return;
      bytes = std::move(to_write_.front());
      to_write_.pop_front();
    }
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t wrote = ::send(child_.channel(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return;  // the reader says what became of the worker
      done += static_cast<std::size_t>(wrote);
    }
  }
}

Frame WorkerLink::Receive(std::optional<std::chrono::milliseconds> timeout, const std::string& awaited) {
  using SteadyClock = std::chrono::steady_clock;
  const SteadyClock::time_point begin = SteadyClock::now();
  bool ended = false;
  std::string bytes(kReadBytes, '\0');
  while (true) {
    if (std::optional<Frame> frame = frames_.Next()) return std::move(*frame);
    int wait_ms = -1;
    if (timeout) {
      const auto left =
          *timeout - std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - begin);
      wait_ms = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    }
    if (ended) wait_ms = kLastWordsMs;
    pollfd descriptors[] = {{child_.channel(), POLLIN, 0}, {ended ? -1 : child_.lifeline(), POLLIN, 0}};
    const int ready = ::poll(descriptors, 2, wait_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (descriptors[0].revents != 0) {
      const ssize_t got = ::recv(child_.channel(), bytes.data(), bytes.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) ThrowGone();
      frames_.Feed(std::string_view(bytes.data(), static_cast<std::size_t>(got)));
    } else if (ended) {
      ThrowGone();
    } else if (descriptors[1].revents != 0) {
      ended = true;
    } else if (ready == 0) {
      throw Error(ExitCode::kEngineFailed,
                  fmt::format("vLLM is alive but silent: no {} within {} s; its log ends\n{}", awaited,
                              timeout->count() / 1000, child_.LogTail()));
    }
  }
}

void WorkerLink::ThrowGone() {
  // The channel may close a moment before the guard has seen the end.
  pollfd descriptor{child_.lifeline(), POLLIN, 0};
  ::poll(&descriptor, 1, kLastWordsMs);
  std::string how = child_.Ended();
  if (how.empty()) how = "it closed its channel";
  throw Error(ExitCode::kEngineFailed,
              fmt::format("vLLM's process has ended ({}); its log ends\n{}", how, child_.LogTail()));
}

void WorkerLink::Stop() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    to_write_.clear();
    wake_writer_.notify_one();
  }
  // A writer that waits for a worker that no longer reads is freed by the worker's end.
  child_.Stop();
  ::shutdown(child_.channel(), SHUT_RDWR);
  if (writer_.joinable()) writer_.join();
}

}  // namespace plumbline
