#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/simulated/cluster_simulation.h"

namespace plumbline {

// Instances that share their experts: their batches run in rounds, all or none.
struct ClusterSimulation::Group {
  std::vector<ClusterInstance*> members;
  std::map<ClusterInstance*, Round*> pending;  // built, waiting for the other members
  std::map<ClusterInstance*, Round*> ready;    // complete, not yet sent
};

}  // namespace plumbline
