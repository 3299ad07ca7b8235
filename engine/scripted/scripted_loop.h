#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/core/engine_loop.h"
#include "engine/core/event_outbox.h"
#include "engine/scripted/scripted_engine.h"

namespace plumbline {

// Plays the scripts of all open requests, earliest event first.
class ScriptedLoop final : public EngineLoop {
 public:
  explicit ScriptedLoop(ScriptedOptions options);
  ~ScriptedLoop() override;

  std::unique_ptr<LoopRequest> Prepare(Request request, EventSink& sink) const override;
  void Submit(std::unique_ptr<LoopRequest> request, TimeNs arrival_ns) override;
  void Cancel(RequestId id) override;
  void Step(TimeNs now) override;
  std::optional<TimeNs> NextEventTime() const override;
  void FinishAll(TimeNs now, FinishReason reason, const std::string& text) override;
  bool ResetPrefixCache() override { return live_.empty(); }
  Counters CurrentCounters() const override;

 private:
  struct Played;
  // When a request has something to do next. One entry a request; that of a request that is gone is passed
  // over.
  struct Due {
    TimeNs time_ns;
    std::int64_t order;  // of submission: decides between equal times
    RequestId id;
    friend bool operator>(const Due& a, const Due& b) {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.order > b.order;
    }
  };

  void PlayUntilLater(Played& request, TimeNs now);
  void EmitTokens(Played& request, TimeNs now);
  void Finish(Played& request, TimeNs now, FinishReason reason, std::string_view text);
  void Post(const Played& request, Event event);
  void Deliver();

  const ScriptedOptions options_;
  const std::vector<TokenId> answer_;  // the ids that all answers are cut from
  std::unordered_map<RequestId, std::unique_ptr<Played>> live_;
  std::vector<std::unique_ptr<Played>> refused_;  // told so by the next Step
  std::vector<std::unique_ptr<Played>> ended_;    // kept until their events are delivered
  std::vector<Due> due_;                          // a heap, the earliest in front
  std::vector<RequestId> to_cancel_;
  EventOutbox outbox_;
  bool dies_ = false;
  std::int64_t next_order_ = 0;
  TimeNs last_step_ns_ = 0;
  Counters counters_;
};

}  // namespace plumbline
