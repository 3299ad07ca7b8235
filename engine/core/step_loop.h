#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/core/engine_loop.h"
#include "engine/core/event_outbox.h"
#include "engine/core/executor.h"
#include "engine/core/scheduler.h"
#include "engine/core/served_request.h"

namespace plumbline {

// Runs requests through scheduler and executor. A step accounts for the batch that has been computed, takes
// in what has arrived, builds the next batch, delivers all events of that, and starts the batch; in real time
// it returns when the batch is computed. Requests that come or go meanwhile are seen by the next step.
class StepLoop final : public EngineLoop, private SchedulerObserver {
 public:
  StepLoop(const SchedulerConfig& config, const SchedulingPolicy& policy, const RequestLimits& limits,
           std::unique_ptr<Executor> executor, TimeMode mode);

  std::unique_ptr<LoopRequest> Prepare(Request request, EventSink& sink) const override;
  void Submit(std::unique_ptr<LoopRequest> request, TimeNs arrival_ns) override;
  void Cancel(RequestId id) override;
  void Step(TimeNs now) override;
  std::optional<TimeNs> NextEventTime() const override;
  void FinishAll(TimeNs now, FinishReason reason, const std::string& text) override;
  bool ResetPrefixCache() override { return scheduler_.ResetPrefixCache(); }
  Counters CurrentCounters() const override;
  void TakeSteps(std::vector<StepRecord>& records) override;
  StepProbe* step_probe() override { return executor_->step_probe(); }

 private:
  void OnScheduled(const Sequence& sequence, TimeNs now) override;
  void OnPreempted(const Sequence& sequence, TimeNs now) override;
  void OnPrefillDone(const Sequence&, TimeNs) override {}
  void OnToken(const Sequence& sequence, TimeNs now, const TokenId* token) override;
  void OnFinished(Sequence& sequence, TimeNs now) override;

  void CompleteBatch(TimeNs now);
  void TakeInArrived(TimeNs now);
  void CancelAsked(TimeNs now);
  void StartBatch(TimeNs now);
  void Admit(ServedRequest& request, TimeNs now);
  void Post(const Sequence& sequence, Event event);
  void Finish(Sequence& sequence, TimeNs now, FinishReason reason, std::string_view text);
  void Deliver();

  const SchedulerConfig config_;
  const SchedulingPolicy policy_;
  const RequestLimits limits_;
  const std::unique_ptr<Executor> executor_;
  const TimeMode mode_;
  Scheduler scheduler_;
  std::unordered_map<RequestId, std::unique_ptr<ServedRequest>> live_;
  std::vector<std::unique_ptr<ServedRequest>> refused_;  // told so by the next Step
  WaitingQueue arriving_;                                // not yet given to the scheduler
  std::vector<RequestId> to_cancel_;
  std::vector<RequestId> ended_;  // to be forgotten once their events are delivered
  EventOutbox outbox_;
  Batch batch_;
  std::vector<TokenId> sampled_;
  StepRecord step_;
  std::vector<StepRecord> steps_;
  bool batch_in_flight_ = false;
  TimeNs batch_ends_ns_ = 0;
  TimeNs last_step_ns_ = 0;
};

}  // namespace plumbline
