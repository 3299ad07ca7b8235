#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/engine.h"

namespace plumbline {

// How a FakeEngine answers, the same for every request.
struct FakeScript {
  TimeNs ttft_ns = 0;        // arrival to first token
  TimeNs itl_ns = 0;         // between bundles
  std::uint32_t bundle = 1;  // tokens that come together
  bool tells_ids = true;
  bool tells_queued = true;
  std::uint32_t cached_toks = 0;
  std::int64_t extra_toks = 0;    // generated beyond what was asked for (or, negative, short of it)
  std::set<RequestId> refused{};  // refused at arrival
  std::set<RequestId> failing{};  // kError instead of the first token
  std::optional<std::int64_t> hang_after{};  // nothing happens any more after so many token events
  std::optional<TimeNs> dies_at_ns{};        // time on the engine's clock
  bool ignores_cancel = false;
};

// An engine in virtual time without a scheduler: every request runs by itself. It checks how it is used and
// throws std::logic_error where the engine interface is broken.
class FakeEngine final : public Engine, public VirtualTime {
 public:
  explicit FakeEngine(FakeScript script = {}) : script_(std::move(script)) {}

  const Facts& facts() const override { return facts_; }
  void Submit(std::vector<Request> requests, EventSink& sink) override;
  void Cancel(RequestId id) override;
  Counters Sample() const override;
  bool ResetPrefixCache() override { return running_.empty(); }
  std::vector<StepRecord> TakeSteps() override;
  void Shutdown() override { running_.clear(); }
  VirtualTime* virtual_time() override { return this; }

  std::optional<TimeNs> NextEventTime() const override;
  void AdvanceTo(TimeNs now) override;

  // Called in each Submit before anything else: a place for costs.
  std::function<void()> on_submit;
  std::vector<std::vector<Request>> submissions;  // as they came in
  std::vector<RequestId> cancelled;

  // Id of token k of a request: any function that shows mix-ups will do.
  static TokenId TokenOf(RequestId id, std::int64_t k) { return static_cast<TokenId>(id * 1000 + k); }

 private:
  struct Running {
    Request request;
    EventSink* sink = nullptr;
    std::int64_t generated = 0;
  };
  enum class Act { kArrive, kTokens };
  struct Pending {
    RequestId id = 0;
    Act act = Act::kArrive;
  };

  void At(TimeNs time_ns, Pending pending) { pending_.emplace(time_ns, pending); }
  void Do(TimeNs time_ns, const Pending& pending);
  void Emit(TimeNs time_ns, const Running& running, EventKind kind, std::uint32_t count = 0,
            FinishReason reason = FinishReason::kNone, const char* text = "");
  void Finish(TimeNs time_ns, RequestId id, FinishReason reason, const char* text = "");
  void DieIfTime(TimeNs now_ns);
  void ThrowIfDead() const;

  const FakeScript script_;
  Facts facts_;
  Counters counters_;
  TimeNs now_ns_ = 0;
  TimeNs last_due_ns_ = 0;
  std::int64_t token_events_ = 0;
  bool dead_ = false;
  std::set<RequestId> seen_;
  std::map<RequestId, Running> running_;
  std::multimap<TimeNs, Pending> pending_;
  std::vector<StepRecord> steps_;
  std::vector<TokenId> ids_;
};

// The same engine on the monotonic clock, with a thread of its own.
class ThreadedFakeEngine final : public Engine {
 public:
  explicit ThreadedFakeEngine(FakeScript script = {});
  ~ThreadedFakeEngine() override { Shutdown(); }

  const Facts& facts() const override { return engine_.facts(); }
  void Submit(std::vector<Request> requests, EventSink& sink) override;
  void Cancel(RequestId id) override;
  Counters Sample() const override;
  bool ResetPrefixCache() override;
  std::vector<StepRecord> TakeSteps() override;
  void Shutdown() override;

  // Number of requests of each Submit so far.
  std::vector<std::size_t> SubmissionSizes() const;

 private:
  void Loop(const std::stop_token& stop);

  mutable std::mutex mutex_;
  FakeEngine engine_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace plumbline
