#include "engine/simulated/cluster_group.h"

#include <algorithm>

namespace plumbline {

bool ClusterSimulation::ServeInGroup(Group& group, ClusterInstance& instance, std::int32_t npu, Round* round,
                                     bool fresh) {
  if (round == nullptr) {
    if (const auto ready = group.ready.find(&instance); ready != group.ready.end()) {
      Round* const own = ready->second;
      group.ready.erase(ready);
      Send(instance, npu, own->programs);
      return true;
    }
    if (group.pending.contains(&instance) || instance.in_flight() >= instance.spec().pp) return false;
    if (group.pending.empty()) return false;
    // Also an end NPU does so, when it is asked before the start NPU could build a batch: requests of this
    // instance then sit the round out.
    round = instance.BuildDummy(npu);
    fresh = true;
  }
  if (!fresh) {
    if (round->programs.empty()) {
      instance.GiveBack(*round, npu);
      return false;
    }
    Send(instance, npu, round->programs);
    return true;
  }
  group.pending[&instance] = round;
  if (group.pending.size() < group.members.size()) return true;
  Assemble(group);
  group.ready.erase(&instance);
  Send(instance, npu, round->programs);
  return true;
}

// The smaller batches are padded to the largest with decodes that compute but attend to nothing.
void ClusterSimulation::Assemble(Group& group) {
  std::int64_t largest = 0;
  for (const auto& [member, round] : group.pending) {
    largest = std::max(largest, round->figures.total_tokens);
  }
  for (const auto& [member, round] : group.pending) {
    BatchFigures& figures = round->figures;
    figures.sequences += largest - figures.total_tokens;
    figures.total_tokens = largest;
    figures.group_tokens = largest;
    round->programs = member->builder().Build(figures);
    group.ready[member] = round;
  }
  group.pending.clear();
}

}  // namespace plumbline
