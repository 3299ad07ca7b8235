#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/core/executor.h"
#include "engine/core/scheduler.h"
#include "engine/core/served_request.h"

namespace plumbline {

enum class TimeMode {
  kReal,     // Execute blocks for as long as the step takes
  kVirtual,  // Execute returns the step's length
};

// Runs requests through scheduler and executor, step by step, under either clock. Holds no clock and no lock:
// one thread calls everything.
class StepLoop final : private SchedulerObserver {
 public:
  StepLoop(const SchedulerConfig& config, const SchedulingPolicy& policy, Executor& executor, TimeMode mode);

  // Takes the request in; the Step at its arrival or later gives it to the scheduler.
  void Submit(std::unique_ptr<ServedRequest> request);

  // The next Step ends the request with kCancelled. Unknown ids are ignored.
  void Cancel(RequestId id);

  // One turn at `now`, which never goes back: accounts for the batch that has been computed, takes in what
  // has arrived, builds the next batch, delivers all events of the turn, starts the batch. In real time it
  // returns when the batch is computed. Throws what the executor throws, with its requests still in flight.
  void Step(TimeNs now);

  // When Step has something to do: at once in real time where there is work, else at the end of the batch in
  // flight or at the next arrival. Nothing while the loop is idle for good.
  std::optional<TimeNs> NextEventTime() const;

  // Ends everything with `reason`, delivered at once.
  void FinishAll(TimeNs now, FinishReason reason, const std::string& text);

  // False while a request holds KV blocks.
  bool ResetPrefixCache() { return scheduler_.ResetPrefixCache(); }

  Counters CurrentCounters() const;
  // Moves the records of the steps completed since the last call to the end of `records`.
  void TakeSteps(std::vector<StepRecord>& records);

 private:
  struct Outbox {
    EventSink* sink = nullptr;
    std::vector<Event> events;
  };

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

  SchedulingPolicy policy_;
  Executor& executor_;
  TimeMode mode_;
  Scheduler scheduler_;
  std::unordered_map<RequestId, std::unique_ptr<ServedRequest>> live_;
  std::vector<std::unique_ptr<ServedRequest>> refused_;  // told so by the next Step
  WaitingQueue arriving_;                                // not yet given to the scheduler
  std::vector<RequestId> to_cancel_;
  std::vector<RequestId> ended_;  // to be forgotten once their events are delivered
  std::vector<Outbox> outboxes_;
  Batch batch_;
  std::vector<TokenId> sampled_;
  StepRecord step_;
  std::vector<StepRecord> steps_;
  bool batch_in_flight_ = false;
  TimeNs batch_ends_ns_ = 0;
  TimeNs last_step_ns_ = 0;
};

}  // namespace plumbline
