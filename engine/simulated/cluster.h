#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/scheduler_config.h"
#include "engine/simulated/cost_tables.h"
#include "engine/simulated/expert_routing.h"
#include "engine/simulated/fabric.h"
#include "engine/simulated/model_shape.h"

namespace plumbline {

// Where weights lie.
struct WeightPlace {
  enum class Kind : std::uint8_t { kNpu, kCpu, kCxl } kind = Kind::kNpu;
  std::int32_t cxl_device = 0;
};

// The most particular entry counts: layer, then block, then default.
struct Placement {
  WeightPlace by_default;
  std::map<std::int64_t, WeightPlace> blocks;
  std::map<std::string, WeightPlace> layers;
  WeightPlace kv_recall = {.kind = WeightPlace::Kind::kCpu};  // KV from a lower tier comes from there

  WeightPlace Of(std::int64_t block, const std::string& layer) const;
  bool all_on_npu() const;
};

enum class Role : std::uint8_t { kWhole, kPrefill, kDecode };

// One serving engine of the cluster, with its settings resolved (an instance's own beat the command line).
struct InstanceSpec {
  std::int64_t node = 0;
  std::string model_name;
  std::string hardware;
  std::shared_ptr<const ModelShape> model;
  std::shared_ptr<const Architecture> architecture;
  std::shared_ptr<const ProfileBundle> profile;
  double npu_mem_gib = 0;
  double npu_mem_gb_per_s = 0;
  double npu_mem_util = 0.9;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t ep = 1;   // of the whole data-parallel group
  std::string dp_group;  // empty = none
  Role role = Role::kWhole;
  std::int64_t bytes_per_element = 2;
  std::int64_t kv_bytes_per_element = 2;
  ExpertRouting expert_routing = ExpertRouting::kBalanced;
  std::shared_ptr<const GateCurve> gate_curve;  // for kCustom
  // num_blocks is computed from npu_mem, unless this says what an engine resolved to.
  std::optional<std::int64_t> num_gpu_blocks;
  SchedulerConfig scheduler;
  Placement placement;

  std::int64_t num_npus() const { return tp * pp; }
};

struct HostMemory {
  double gib = 0;
  double gb_per_s = 0;
  double latency_ns = 0;
};

struct ClusterSpec {
  std::string source;  // the file, for messages
  std::vector<HostMemory> nodes;
  std::vector<InstanceSpec> instances;  // ids count through the nodes
  std::vector<double> link_gib_per_s;   // one value, or one a network dimension
  std::vector<double> link_latency_ns;
  MemoryDevice cxl;
  double cxl_gib = 0;  // of one device
  std::int32_t num_cxl_devices = 0;
};

// What follows from an instance's place in the cluster.
struct InstancePlan {
  std::int32_t first_npu =
      0;  // NPUs are stage by stage, ranks innermost; a prefill instance has as many again
  std::int32_t num_npus = 0;   // that compute
  std::int32_t start_npu = 0;  // asks for new batches
  std::int32_t end_npu = 0;    // the last one that finishes a batch
  std::int64_t local_ep = 1;   // expert groups of this instance
  std::int64_t first_expert_group = 0;
  std::int64_t weight_bytes = 0;        // a device
  std::int64_t kv_bytes_per_block = 0;  // a device
  std::int32_t host_device = 0;
  SchedulerConfig scheduler;  // complete
};

struct ClusterPlan {
  FabricSpec fabric;
  std::vector<InstancePlan> instances;
  std::vector<std::int32_t> instance_of_npu;
  std::int32_t first_cxl_device = 0;
};

// Lays the cluster out: NPU ids, network dimensions, capacities. Throws
// Error(kBadInput) for a cluster that contradicts itself or leaves no room for KV blocks.
ClusterPlan PlanCluster(const ClusterSpec& cluster);

}  // namespace plumbline
