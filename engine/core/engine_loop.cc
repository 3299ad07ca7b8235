#include "engine/core/engine_loop.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/base/error.h"

namespace plumbline {
namespace {

// What both engines share: the loop, and what is left of a dead engine.
class LoopEngine : public Engine {
 public:
  LoopEngine(Facts facts, std::unique_ptr<EngineLoop> loop)
      : facts_(std::move(facts)), loop_(std::move(loop)) {}

  const Facts& facts() const override { return facts_; }

 protected:
  std::vector<std::unique_ptr<LoopRequest>> Prepare(std::vector<Request> requests, EventSink& sink) const {
    std::vector<std::unique_ptr<LoopRequest>> prepared;
    prepared.reserve(requests.size());
    for (Request& request : requests) prepared.push_back(loop_->Prepare(std::move(request), sink));
    return prepared;
  }

  [[noreturn]] void ThrowDead(const std::string& last_words) const {
    throw Error(ExitCode::kEngineFailed, facts_.engine + " engine: " + last_words);
  }

  const Facts facts_;
  const std::unique_ptr<EngineLoop> loop_;
};

std::string Describe(const std::exception& exception) {
  return std::string("died in a step: ") + exception.what();
}

// The loop belongs to one thread; everything that others want from it goes through the mailbox.
class RealTimeEngine final : public LoopEngine, private StepProbe {
 public:
  RealTimeEngine(Facts facts, std::unique_ptr<EngineLoop> loop)
      : LoopEngine(std::move(facts), std::move(loop)),
        loop_probe_(loop_->step_probe()),
        thread_([this] { Run(); }) {}

  ~RealTimeEngine() override { Shutdown(); }

  void Submit(std::vector<Request> requests, EventSink& sink) override {
    auto prepared = Prepare(std::move(requests), sink);
    {
      const std::lock_guard lock(mutex_);
      RequireAlive();
      // One stamp a call, taken under the lock: the order of arrival is the order of submission, and a burst
      // arrives together.
      const TimeNs arrival = clock_.NowNs();
      for (auto& request : prepared) submitted_.push_back({std::move(request), arrival});
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
    answered_.wait(lock, [this] { return !reset_asked_; });
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

  StepProbe* step_probe() override { return loop_probe_ == nullptr ? nullptr : this; }

 private:
  // On the loop's thread, as all steps are: another one would bring a second team of threads.
  TimeNs RunStep(const StepShape& shape) override {
    ProbeCall call{.shape = shape};
    std::unique_lock lock(mutex_);
    RequireAlive();
    probe_asked_ = &call;
    wake_.notify_one();
    answered_.wait(lock, [&call] { return call.answered; });
    if (call.error) std::rethrow_exception(call.error);
    return call.duration_ns;
  }

  void RequireAlive() const {
    if (!last_words_.empty()) ThrowDead(last_words_);
    if (stop_) ThrowDead("was shut down");
  }

  void Run() {
    std::string death;
    loop_->BeforeDelivery([this] {
      const std::lock_guard lock(mutex_);
      Publish();
    });
    try {
      while (ReadMailbox()) {
        if (loop_->NextEventTime()) loop_->Step(clock_.NowNs());
      }
    } catch (const std::exception& exception) {
      death = Describe(exception);
    }
    Close(death);
  }

  // Moves what came in to the loop, and out what the loop has; waits until there is something to do. False
  // when it is time to stop.
  bool ReadMailbox() {
    std::unique_lock lock(mutex_);
    Publish();
    const auto mail = [this] {
      return stop_ || reset_asked_ || probe_asked_ != nullptr || !submitted_.empty() || !cancelled_.empty();
    };
    const std::optional<TimeNs> next = loop_->NextEventTime();
    if (!next) {
      wake_.wait(lock, mail);
    } else if (*next > clock_.NowNs()) {
      wake_.wait_until(lock, TimePoint(*next), mail);
    }
    for (Submitted& submitted : submitted_) {
      loop_->Submit(std::move(submitted.request), submitted.arrival_ns);
    }
    submitted_.clear();
    for (const RequestId id : cancelled_) loop_->Cancel(id);
    cancelled_.clear();
    if (reset_asked_) {
      reset_succeeded_ = loop_->ResetPrefixCache();
      reset_asked_ = false;
      answered_.notify_all();
    }
    if (ProbeCall* call = std::exchange(probe_asked_, nullptr); call != nullptr) {
      lock.unlock();
      Answer(*call);
      lock.lock();
      call->answered = true;
      answered_.notify_all();
    }
    return !stop_;
  }

  // MonotonicClock and steady_clock are both CLOCK_MONOTONIC.
  static std::chrono::steady_clock::time_point TimePoint(TimeNs time) {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time));
  }

  void Publish() {
    counters_ = loop_->CurrentCounters();
    loop_->TakeSteps(steps_);
  }

  // The last that the thread does. Nothing gets into the mailbox once `stop_` is set; the sinks are called
  // without the lock, for they may have locks of their own.
  void Close(const std::string& death) {
    {
      const std::lock_guard lock(mutex_);
      last_words_ = death;
      stop_ = true;
      for (Submitted& submitted : submitted_) {
        loop_->Submit(std::move(submitted.request), submitted.arrival_ns);
      }
      submitted_.clear();
    }
    const bool died = !death.empty();
    loop_->FinishAll(clock_.NowNs(), died ? FinishReason::kError : FinishReason::kCancelled,
                     died ? death : "engine shut down");
    const std::lock_guard lock(mutex_);
    Publish();
    reset_asked_ = reset_succeeded_ = false;
    if (ProbeCall* call = std::exchange(probe_asked_, nullptr); call != nullptr) {
      call->error = std::make_exception_ptr(
          Error(ExitCode::kEngineFailed, facts_.engine + " engine: ended before the step was run"));
      call->answered = true;
    }
    answered_.notify_all();
  }

  struct ProbeCall {
    const StepShape& shape;
    TimeNs duration_ns = 0;
    std::exception_ptr error{};
    bool answered = false;
  };

  void Answer(ProbeCall& call) {
    try {
      if (loop_->NextEventTime()) {
        throw Error(ExitCode::kInvalid, facts_.engine + " engine: a step can be measured only while no " +
                                            "request is in flight");
      }
      call.duration_ns = loop_probe_->RunStep(call.shape);
    } catch (...) {
      call.error = std::current_exception();
    }
  }

  struct Submitted {
    std::unique_ptr<LoopRequest> request;
    TimeNs arrival_ns;
  };

  const MonotonicClock clock_;
  mutable std::mutex mutex_;  // everything down to the thread
  std::condition_variable wake_;
  std::condition_variable answered_;  // a reset or a probe
  std::vector<Submitted> submitted_;
  std::vector<RequestId> cancelled_;
  Counters counters_;
  std::vector<StepRecord> steps_;
  std::string last_words_;  // not empty: the engine died
  bool stop_ = false;
  bool reset_asked_ = false;
  bool reset_succeeded_ = false;
  ProbeCall* probe_asked_ = nullptr;
  StepProbe* const loop_probe_;
  std::thread thread_;  // last: it uses all of the above
};

class VirtualEngine final : public LoopEngine, private VirtualTime {
 public:
  using LoopEngine::LoopEngine;

  void Submit(std::vector<Request> requests, EventSink& sink) override {
    RequireAlive();
    for (auto& request : Prepare(std::move(requests), sink)) {
      const TimeNs arrival = std::max(request->due_ns, now_);
      loop_->Submit(std::move(request), arrival);
    }
  }

  void Cancel(RequestId id) override {
    RequireAlive();
    loop_->Cancel(id);
  }

  Counters Sample() const override {
    RequireAlive();
    return loop_->CurrentCounters();
  }

  bool ResetPrefixCache() override {
    RequireAlive();
    return loop_->ResetPrefixCache();
  }

  std::vector<StepRecord> TakeSteps() override {
    std::vector<StepRecord> steps;
    loop_->TakeSteps(steps);
    return steps;
  }

  void Shutdown() override {
    if (!last_words_.empty()) return;
    last_words_ = "was shut down";
    loop_->FinishAll(now_, FinishReason::kCancelled, "engine shut down");
  }

  VirtualTime* virtual_time() override { return this; }

 private:
  std::optional<TimeNs> NextEventTime() const override { return loop_->NextEventTime(); }

  void AdvanceTo(TimeNs now) override {
    RequireAlive();
    try {
      for (auto next = loop_->NextEventTime(); next && *next <= now; next = loop_->NextEventTime()) {
        now_ = *next;
        loop_->Step(now_);
      }
    } catch (const std::exception& exception) {
      last_words_ = Describe(exception);
      loop_->FinishAll(now_, FinishReason::kError, last_words_);
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

std::unique_ptr<Engine> MakeEngine(Facts facts, std::unique_ptr<EngineLoop> loop, TimeMode mode) {
  if (mode == TimeMode::kVirtual) return std::make_unique<VirtualEngine>(std::move(facts), std::move(loop));
  return std::make_unique<RealTimeEngine>(std::move(facts), std::move(loop));
}

}  // namespace plumbline
