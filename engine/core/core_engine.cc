#include "engine/core/core_engine.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/base/error.h"
#include "engine/core/served_request.h"
#include "engine/core/step_loop.h"

namespace plumbline {
namespace {

CoreEngineParts Completed(CoreEngineParts parts) {
  const SchedulerConfig& scheduler = parts.scheduler;
  CheckSchedulerConfig(scheduler);
  Facts& facts = parts.facts;
  facts.max_num_seqs = scheduler.max_num_seqs;
  facts.max_num_batched_tokens = scheduler.max_num_batched_tokens;
  facts.enable_prefix_caching = scheduler.enable_prefix_caching;
  facts.kv_capacity = {.per_engine = {{.num_gpu_blocks = scheduler.num_blocks,
                                       .block_size = scheduler.block_size,
                                       .kv_cache_size_tokens = scheduler.num_blocks * scheduler.block_size}},
                       .unknown_reason = {}};
  return parts;
}

// What both engines share: the parts, and what is left of a dead engine.
class CoreEngine : public Engine {
 public:
  CoreEngine(CoreEngineParts parts, TimeMode mode)
      : parts_(Completed(std::move(parts))), loop_(parts_.scheduler, parts_.policy, *parts_.executor, mode) {}

  const Facts& facts() const override { return parts_.facts; }

 protected:
  std::vector<std::unique_ptr<ServedRequest>> Serve(std::vector<Request> requests, EventSink& sink) const {
    std::vector<std::unique_ptr<ServedRequest>> served;
    served.reserve(requests.size());
    for (Request& request : requests) {
      served.push_back(
          MakeServedRequest(std::move(request), sink, parts_.facts, parts_.scheduler, parts_.policy));
    }
    return served;
  }

  [[noreturn]] void ThrowDead(const std::string& last_words) const {
    throw Error(ExitCode::kEngineFailed, parts_.facts.engine + " engine: " + last_words);
  }

  CoreEngineParts parts_;
  StepLoop loop_;
};

std::string Describe(const std::exception& exception) {
  return std::string("died in a step: ") + exception.what();
}

// The loop belongs to one thread; everything that others want from it goes through the mailbox.
class RealTimeEngine final : public CoreEngine {
 public:
  explicit RealTimeEngine(CoreEngineParts parts)
      : CoreEngine(std::move(parts), TimeMode::kReal), thread_([this] { Run(); }) {}

  ~RealTimeEngine() override { Shutdown(); }

  void Submit(std::vector<Request> requests, EventSink& sink) override {
    auto served = Serve(std::move(requests), sink);
    {
      const std::lock_guard lock(mutex_);
      RequireAlive();
      // One stamp a call, taken under the lock: the order of arrival is the order of submission, and a burst
      // arrives together.
      const TimeNs arrival = clock_.NowNs();
      for (auto& request : served) {
        request->arrival_ns = arrival;
        submitted_.push_back(std::move(request));
      }
    }
    wake_.notify_one();
  }

  void Cancel(RequestId id) override {
    {
      const std::lock_guard lock(mutex_);
      RequireAlive();
      cancelled_.push_back(id);
    }
    wake_.notify_one();
  }

  Counters Sample() const override {
    const std::lock_guard lock(mutex_);
    RequireAlive();
    return counters_;
  }

  bool ResetPrefixCache() override {
    std::unique_lock lock(mutex_);
    RequireAlive();
    reset_asked_ = true;
    wake_.notify_one();
    reset_done_.wait(lock, [this] { return !reset_asked_; });
    RequireAlive();
    return reset_succeeded_;
  }

  std::vector<StepRecord> TakeSteps() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(steps_, {});
  }

  void Shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void RequireAlive() const {
    if (!last_words_.empty()) ThrowDead(last_words_);
    if (stop_) ThrowDead("was shut down");
  }

  void Run() {
    std::string death;
    try {
      while (ReadMailbox()) {
        while (loop_.NextEventTime()) {
          loop_.Step(clock_.NowNs());
          if (!ReadMailbox(/*wait=*/false)) break;
        }
      }
    } catch (const std::exception& exception) {
      death = Describe(exception);
    }
    Close(death);
  }

  // Moves what came in to the loop, and out what the loop has. Waits for something to do unless the loop has
  // work. False when it is time to stop.
  bool ReadMailbox(bool wait = true) {
    std::unique_lock lock(mutex_);
    Publish();
    if (wait) {
      wake_.wait(lock,
                 [this] { return stop_ || reset_asked_ || !submitted_.empty() || !cancelled_.empty(); });
    }
    for (auto& request : submitted_) loop_.Submit(std::move(request));
    submitted_.clear();
    for (const RequestId id : cancelled_) loop_.Cancel(id);
    cancelled_.clear();
    if (reset_asked_) {
      reset_succeeded_ = loop_.ResetPrefixCache();
      reset_asked_ = false;
      reset_done_.notify_all();
    }
    return !stop_;
  }

  void Publish() {
    counters_ = loop_.CurrentCounters();
    loop_.TakeSteps(steps_);
  }

  // The last that the thread does. Nothing gets into the mailbox once `stop_` is set; the sinks are called
  // without the lock, for they may have locks of their own. Whoever learns from them that the engine is gone
  // finds its last steps published.
  void Close(const std::string& death) {
    {
      const std::lock_guard lock(mutex_);
      last_words_ = death;
      stop_ = true;
      for (auto& request : submitted_) loop_.Submit(std::move(request));
      submitted_.clear();
      Publish();
    }
    const bool died = !death.empty();
    loop_.FinishAll(clock_.NowNs(), died ? FinishReason::kError : FinishReason::kCancelled,
                    died ? death : "engine shut down");
    const std::lock_guard lock(mutex_);
    Publish();
    reset_asked_ = reset_succeeded_ = false;
    reset_done_.notify_all();
  }

  MonotonicClock clock_;
  mutable std::mutex mutex_;  // everything down to the thread
  std::condition_variable wake_;
  std::condition_variable reset_done_;
  std::vector<std::unique_ptr<ServedRequest>> submitted_;
  std::vector<RequestId> cancelled_;
  Counters counters_;
  std::vector<StepRecord> steps_;
  std::string last_words_;  // not empty: the engine died
  bool stop_ = false;
  bool reset_asked_ = false;
  bool reset_succeeded_ = false;
  std::thread thread_;  // last: it uses all of the above
};

class VirtualEngine final : public CoreEngine, private VirtualTime {
 public:
  explicit VirtualEngine(CoreEngineParts parts) : CoreEngine(std::move(parts), TimeMode::kVirtual) {}

  void Submit(std::vector<Request> requests, EventSink& sink) override {
    RequireAlive();
    for (auto& request : Serve(std::move(requests), sink)) {
      request->arrival_ns = std::max(request->arrival_ns, now_);
      loop_.Submit(std::move(request));
    }
  }

  void Cancel(RequestId id) override {
    RequireAlive();
    loop_.Cancel(id);
  }

  Counters Sample() const override {
    RequireAlive();
    return loop_.CurrentCounters();
  }

  bool ResetPrefixCache() override {
    RequireAlive();
    return loop_.ResetPrefixCache();
  }

  std::vector<StepRecord> TakeSteps() override {
    std::vector<StepRecord> steps;
    loop_.TakeSteps(steps);
    return steps;
  }

  void Shutdown() override {
    if (!last_words_.empty()) return;
    last_words_ = "was shut down";
    loop_.FinishAll(now_, FinishReason::kCancelled, "engine shut down");
  }

  VirtualTime* virtual_time() override { return this; }

 private:
  std::optional<TimeNs> NextEventTime() const override { return loop_.NextEventTime(); }

  void AdvanceTo(TimeNs now) override {
    RequireAlive();
    try {
      for (auto next = loop_.NextEventTime(); next && *next <= now; next = loop_.NextEventTime()) {
        now_ = *next;
        loop_.Step(now_);
      }
    } catch (const std::exception& exception) {
      last_words_ = Describe(exception);
      loop_.FinishAll(now_, FinishReason::kError, last_words_);
      ThrowDead(last_words_);
    }
    now_ = std::max(now_, now);
  }

  void RequireAlive() const {
    if (!last_words_.empty()) ThrowDead(last_words_);
  }

  TimeNs now_ = 0;
  std::string last_words_;  // not empty: the engine is no more
};

}  // namespace

std::unique_ptr<Engine> MakeCoreEngine(CoreEngineParts parts) {
  return std::make_unique<RealTimeEngine>(std::move(parts));
}

std::unique_ptr<Engine> MakeVirtualCoreEngine(CoreEngineParts parts) {
  return std::make_unique<VirtualEngine>(std::move(parts));
}

}  // namespace plumbline
