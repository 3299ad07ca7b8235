#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/simulated/cluster.h"
#include "engine/simulated/cluster_instance.h"
#include "engine/simulated/fabric.h"
#include "engine/simulated/python_random.h"
#include "engine/simulated/simulation.h"

namespace plumbline {

// The main loop of LLMServingSim (commit 5daddb2), whose output it reproduces to the byte: time advances
// event by event, and after each the idle NPUs are asked what to do next. One thread, no I/O.
class ClusterSimulation {
 public:
  // Throws Error(kBadInput) for a cluster that contradicts itself. The cluster must stay.
  ClusterSimulation(const ClusterSpec& cluster, const SimulationOptions& options,
                    SimulationListener& listener);
  ~ClusterSimulation();

  // Requests of one call come in the order of their ids; sessions are whole. Throws Error(kBadInput) naming
  // the request that can never be served.
  void Add(std::vector<SimulationRequest> requests);

  // Why the request can never be served; empty when it can.
  std::string NeverFits(const SimulationRequest& request) const;

  // Takes a request out wherever it is; it gets no row. Unknown ids are ignored.
  void Cancel(RequestId id);

  // The next turn of the loop. False when everything is done, or nothing is left to do until Add. Throws
  // Error(kBadInput) when requests wait for ever.
  bool Turn();

  // When the next turn takes place; nothing when there is none.
  std::optional<TimeNs> NextTurn() const;

  TimeNs now() const { return fabric_.now(); }
  SimulationTotals Totals() const;
  const std::vector<std::unique_ptr<ClusterInstance>>& instances() const { return instances_; }
  const ClusterPlan& plan() const { return plan_; }
  // "instance 0: layer act_fn has no times": once each.
  std::vector<std::string> Warnings() const;
  // What took place so far whose rule no stored output of the reference confirms.
  std::vector<std::string> Unverified() const;

 private:
  struct Group;

  void MakeLowerTiers();
  void Start();
  TimeNs IdleStep() const;
  bool Poll(std::int32_t npu);
  void RouteArrived();
  ClusterInstance& Choose(std::int64_t& next, Role excluded);
  void HandleFinished(ClusterInstance& instance, SimulatedSequence& sequence);
  void ReleaseNextOfSession(std::int64_t session, TimeNs tool_duration_ns);
  void AcceptTransfers();
  bool Serve(ClusterInstance& instance, std::int32_t npu, std::int64_t next_id);
  bool ServeInGroup(Group& group, ClusterInstance& instance, std::int32_t npu, Round* round, bool fresh);
  void Assemble(Group& group);
  void Send(ClusterInstance& instance, std::int32_t npu,
            const std::vector<std::shared_ptr<const Program>>& programs);
  void BeatIfDue();
  bool FinishIfDone(ClusterInstance& instance, std::int32_t npu);
  bool PrefillDone() const;
  bool Drained() const;
  [[noreturn]] void ThrowStuck() const;

  const ClusterSpec& cluster_;
  const SimulationOptions options_;
  SimulationListener& listener_;
  const ClusterPlan plan_;
  Fabric fabric_;
  std::vector<std::unique_ptr<ClusterInstance>> instances_;
  std::map<std::string, std::unique_ptr<Group>> groups_;
  std::vector<std::int32_t> poll_order_;  // end NPUs, then start NPUs
  std::vector<bool> asleep_;              // by NPU

  std::multimap<TimeNs, std::unique_ptr<SimulatedSequence>> pending_;  // not yet routed, equal times in order
  std::unordered_map<RequestId, std::unique_ptr<SimulatedSequence>> routed_;
  std::vector<std::unique_ptr<SimulatedSequence>> cancelled_;  // held by batches in flight
  std::unordered_map<std::int64_t, std::deque<std::unique_ptr<SimulatedSequence>>>
      sessions_;                              // still to come
  std::deque<SimulatedSequence*> transfers_;  // prefilled, waiting for room on a decode instance
  PythonRandom random_{42};                   // kRandom
  bool transfer_waited_ = false;
  std::int64_t next_instance_ = 0;
  std::int64_t next_decode_instance_ = 0;
  TimeNs last_beat_ns_ = 0;
  std::int64_t beat_prompt_tokens_ = 0;  // totals at the last heartbeat
  std::int64_t beat_generated_tokens_ = 0;
  SimulationTotals totals_;
  bool started_ = false;
  bool exited_ = false;
  bool changed_ = true;  // the last turn did something
};

}  // namespace plumbline
