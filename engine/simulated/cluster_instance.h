#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/api/facts.h"
#include "engine/core/scheduler.h"
#include "engine/simulated/cluster.h"
#include "engine/simulated/lower_tier.h"
#include "engine/simulated/program_builder.h"
#include "engine/simulated/simulation.h"

namespace plumbline {

// A request on its way through the cluster.
struct SimulatedSequence final : Sequence {
  std::int64_t session = -1;
  TimeNs tool_duration_ns = 0;
  TimeNs last_token_ns = 0;
  std::int64_t instance = -1;        // where it is, once routed
  bool first_token_pending = false;  // its prefill is accounted for, its first token not yet
  SimulatedRow row;
};

// A batch under way.
struct Round {
  std::int64_t id = 0;
  Batch batch;  // empty for a dummy, which only keeps the data-parallel group in step
  BatchFigures figures;
  StepRecord step;                                       // but for its duration
  std::vector<std::shared_ptr<const Program>> programs;  // empty until its group is complete
  bool taken_by_start = false;
  bool taken_by_end = false;
  bool reported_by_start = false;
  bool reported_by_end = false;
};

// Hears what the schedulers do, beside the rows that are filled in anyway.
class SimulationListener {
 public:
  virtual ~SimulationListener() = default;
  virtual void OnQueued(const SimulatedSequence&, TimeNs) {}
  virtual void OnScheduled(const SimulatedSequence&, TimeNs) {}
  virtual void OnPreempted(const SimulatedSequence&, TimeNs) {}
  virtual void OnToken(const SimulatedSequence&, TimeNs) {}
  virtual void OnRow(std::int64_t instance, SimulatedRow row, TimeNs now) = 0;
  // A batch has been computed.
  virtual void OnStep(std::int64_t, const StepRecord&) {}
  virtual void OnHeartbeat(const Heartbeat&) {}
};

// One serving engine of the cluster: its scheduler, its batches in flight, its requests' figures.
class ClusterInstance final : private SchedulerObserver {
 public:
  ClusterInstance(std::int64_t index, const InstanceSpec& spec, const InstancePlan& plan,
                  const ClusterPlan& cluster, SimulationListener& listener);

  const InstanceSpec& spec() const { return spec_; }
  const InstancePlan& plan() const { return plan_; }
  std::int64_t index() const { return index_; }
  Scheduler& scheduler() { return scheduler_; }
  const Scheduler& scheduler() const { return scheduler_; }
  const ProgramBuilder& builder() const { return builder_; }

  bool has_end() const { return plan_.end_npu != plan_.start_npu; }
  std::int64_t in_flight() const { return static_cast<std::int64_t>(rounds_.size()); }
  bool empty() const { return scheduler_.idle() && rounds_.empty(); }

  // Keeps computed prefixes in a lower tier, too.
  void UseLowerTier(std::shared_ptr<LowerTier> tier);

  // A new batch in flight, taken by the start NPU; null when there is nothing to compute.
  Round* Build(TimeNs now);
  // A round without requests, taken by `npu`.
  Round* BuildDummy(std::int32_t npu);
  // The round with this id, if `npu` has not taken it; takes it.
  Round* Take(std::int32_t npu, std::int64_t id);
  void GiveBack(Round& round, std::int32_t npu);
  // `npu` has finished the round with this id, if there is one. When all have, the batch is completed and the
  // requests that ended with it are returned.
  std::vector<SimulatedSequence*> Report(std::int32_t npu, std::int64_t id, TimeNs now);

  // NPUs that have nothing more to do; the instance is done when both ends have said so.
  void RecordDone(std::int32_t npu);
  bool done() const { return done_; }

  InstanceHeartbeat State() const;

 private:
  void OnScheduled(const Sequence& sequence, TimeNs now) override;
  void OnPreempted(const Sequence& sequence, TimeNs now) override;
  void OnPrefillDone(const Sequence& sequence, TimeNs now) override;
  void OnToken(const Sequence& sequence, TimeNs now, const TokenId* token) override;
  void OnFinished(Sequence& sequence, TimeNs now) override;
  Round& NewRound();

  const std::int64_t index_;
  const InstanceSpec& spec_;
  const InstancePlan& plan_;
  SimulationListener& listener_;
  Scheduler scheduler_;
  ProgramBuilder builder_;
  std::shared_ptr<LowerTier> lower_tier_;  // null = there is none
  std::deque<std::unique_ptr<Round>> rounds_;
  std::vector<std::unique_ptr<Round>> spare_rounds_;
  std::int64_t next_round_ = 0;
  std::vector<SimulatedSequence*> finished_;
  bool start_done_ = false;
  bool end_done_ = false;
  bool done_ = false;
};

}  // namespace plumbline
