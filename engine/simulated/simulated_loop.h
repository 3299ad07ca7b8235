#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/core/engine_loop.h"
#include "engine/core/event_outbox.h"
#include "engine/core/request_limits.h"
#include "engine/simulated/cluster_simulation.h"

namespace plumbline {

// Moves a simulation turn by turn and tells what happens in it as events.
class SimulatedLoop final : public EngineLoop, private SimulationListener {
 public:
  SimulatedLoop(std::shared_ptr<const ClusterSpec> cluster, SimulationOptions options, RequestLimits limits);
  ~SimulatedLoop() override;

  std::unique_ptr<LoopRequest> Prepare(Request request, EventSink& sink) const override;
  void Submit(std::unique_ptr<LoopRequest> request, TimeNs arrival_ns) override;
  void Cancel(RequestId id) override;
  void Step(TimeNs now) override;
  std::optional<TimeNs> NextEventTime() const override;
  void FinishAll(TimeNs now, FinishReason reason, const std::string& text) override;
  bool ResetPrefixCache() override;
  Counters CurrentCounters() const override;
  void TakeSteps(std::vector<StepRecord>& records) override;

  const ClusterSimulation& simulation() const { return simulation_; }

 private:
  struct Live {
    EventSink* sink = nullptr;
    bool announced = false;
  };
  struct Prepared;

  void OnQueued(const SimulatedSequence& sequence, TimeNs now) override;
  void OnScheduled(const SimulatedSequence& sequence, TimeNs now) override;
  void OnPreempted(const SimulatedSequence& sequence, TimeNs now) override;
  void OnToken(const SimulatedSequence& sequence, TimeNs now) override;
  void OnRow(std::int64_t instance, SimulatedRow row, TimeNs now) override;
  void OnStep(std::int64_t instance, const StepRecord& step) override;
  void Post(RequestId id, Event event);
  void Deliver();

  const std::shared_ptr<const ClusterSpec> cluster_;
  const RequestLimits limits_;
  ClusterSimulation simulation_;
  std::unordered_map<RequestId, Live> live_;
  std::vector<std::unique_ptr<Prepared>> refused_;  // told so by the next Step
  std::vector<RequestId> to_cancel_;
  std::vector<RequestId> ended_;
  EventOutbox outbox_;
  std::vector<StepRecord> steps_;
  TimeNs last_step_ns_ = 0;
};

}  // namespace plumbline
