#include <map>
#include <memory>
#include <string>

#include "engine/base/error.h"
#include "engine/simulated/cluster_simulation.h"

namespace plumbline {

// One tier an instance; shared, one a node (CPU) or one for all (CXL).
void ClusterSimulation::MakeLowerTiers() {
  const bool cpu = options_.prefix_storage == PrefixStorage::kCpu;
  if (!cpu && cluster_.num_cxl_devices == 0) {
    ThrowBadInput(
        {.file = cluster_.source, .field = "cxl_mem", .problem = "is missing; prefix storage CXL needs it"});
  }
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  std::map<std::int64_t, std::shared_ptr<LowerTier>> tiers;
  for (const auto& instance : instances_) {
    const std::int64_t node = instance->spec().node;
    const std::int64_t owner = !options_.prefix_sharing ? instance->index() : (cpu ? node : 0);
    const double gib = cpu ? cluster_.nodes[static_cast<std::size_t>(node)].gib
                           : cluster_.cxl_gib * cluster_.num_cxl_devices;
    const InstancePlan& plan = instance->plan();
    auto tier = std::make_shared<LowerTier>(plan.scheduler.block_size,
                                            plan.kv_bytes_per_block * plan.num_npus, gib * kGiB);
    auto& shared = tiers[owner];
    if (!shared) shared = tier;
    if (shared->block_size() != tier->block_size() || shared->bytes_per_chunk() != tier->bytes_per_chunk()) {
      ThrowBadInput({.file = cluster_.source,
                     .field = "instance " + std::to_string(instance->index()) + ": block_size",
                     .value = std::to_string(tier->block_size()),
                     .problem = "differs in tokens or bytes a block from an instance with which it shares "
                                "its prefix storage"});
    }
    instance->UseLowerTier(shared);
  }
}

}  // namespace plumbline
