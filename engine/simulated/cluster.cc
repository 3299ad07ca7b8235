#include "engine/simulated/cluster.h"

#include <algorithm>
#include <set>

#include "engine/base/error.h"

namespace plumbline {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

std::string InstanceField(std::size_t index, const std::string& field) {
  return "instance " + std::to_string(index) + ": " + field;
}

[[noreturn]] void ThrowInstance(const ClusterSpec& cluster, std::size_t index, const std::string& field,
                                std::int64_t value, const std::string& problem) {
  ThrowBadInput({.file = cluster.source,
                 .field = InstanceField(index, field),
                 .value = std::to_string(value),
                 .problem = problem});
}

std::vector<std::size_t> GroupMembers(const ClusterSpec& cluster, const std::string& group) {
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < cluster.instances.size(); ++i) {
    if (cluster.instances[i].dp_group == group) members.push_back(i);
  }
  return members;
}

void CheckInstance(const ClusterSpec& cluster, std::size_t index) {
  const InstanceSpec& instance = cluster.instances[index];
  const ModelShape& model = *instance.model;
  if (instance.pp > model.num_layers) {
    ThrowInstance(cluster, index, "pp_size", instance.pp,
                  "exceeds the model's " + std::to_string(model.num_layers) + " layers");
  }
  if (!model.moe()) return;
  if (model.num_experts % instance.ep != 0) {
    ThrowInstance(cluster, index, "ep_size", instance.ep,
                  "does not divide the model's " + std::to_string(model.num_experts) + " experts");
  }
  if (instance.dp_group.empty() && instance.ep > instance.tp) {
    ThrowInstance(cluster, index, "ep_size", instance.ep,
                  "exceeds tp_size " + std::to_string(instance.tp) + ", which needs a dp_group");
  }
}

void CheckGroup(const ClusterSpec& cluster, const std::string& group) {
  const auto members = GroupMembers(cluster, group);
  const InstanceSpec& first = cluster.instances[members.front()];
  for (const std::size_t i : members) {
    const InstanceSpec& member = cluster.instances[i];
    if (member.tp == first.tp && member.pp == first.pp && member.ep == first.ep) continue;
    ThrowBadInput({.file = cluster.source,
                   .field = InstanceField(i, "dp_group"),
                   .value = group,
                   .problem = "has members that differ in tp_size, pp_size or ep_size"});
  }
  const std::int64_t count = static_cast<std::int64_t>(members.size());
  if (!first.model->moe()) return;
  if (first.ep % count != 0) {
    ThrowInstance(cluster, members.front(), "ep_size", first.ep,
                  "is not divisible by the " + std::to_string(count) + " members of dp_group " + group);
  }
  if (first.ep > first.tp * count) {
    ThrowInstance(cluster, members.front(), "ep_size", first.ep,
                  "gives a device several expert groups, which is not simulated: dp_group " + group +
                      " has tp_size * members = " + std::to_string(first.tp * count) + " devices a stage");
  }
}

// Network dimensions, innermost first; trailing ones of size 1 are dropped.
std::vector<std::int64_t> DimensionSizes(const ClusterSpec& cluster, const std::string& group) {
  std::vector<std::int64_t> sizes;
  if (!group.empty()) {
    const auto members = GroupMembers(cluster, group);
    const InstanceSpec& first = cluster.instances[members.front()];
    sizes = {first.tp};
    if (first.pp > 1) sizes.push_back(first.pp);
    sizes.push_back(static_cast<std::int64_t>(members.size()));
  } else {
    std::int64_t npus = 0;
    std::int64_t stages = 0;
    std::int64_t instances = 0;
    for (const InstanceSpec& instance : cluster.instances) {
      const std::int64_t times = instance.role == Role::kPrefill ? 2 : 1;
      npus += times * instance.num_npus();
      stages += times * instance.pp;
      instances += times;
    }
    sizes = npus == stages ? std::vector{npus / instances, instances} : std::vector{npus / stages, stages};
  }
  while (!sizes.empty() && sizes.back() == 1) sizes.pop_back();
  return sizes;
}

double PerDimension(const ClusterSpec& cluster, const std::vector<double>& values, std::size_t dimension,
                    const char* field) {
  if (values.size() == 1) return values[0];
  if (dimension < values.size()) return values[dimension];
  ThrowBadInput({.file = cluster.source,
                 .field = field,
                 .problem = "has " + std::to_string(values.size()) + " values but the network has " +
                            std::to_string(dimension + 1) + " dimensions or more"});
}

// Tensor-parallel groups lie in the first dimension; expert groups also reach over the last one, never over
// the stages, when a data-parallel group shares its experts.
std::array<std::vector<std::int32_t>, 2> ScopesOf(const InstanceSpec& instance, std::size_t dimensions) {
  if (dimensions == 0) return {};
  if (instance.dp_group.empty()) return {std::vector{0}, std::vector{0}};
  std::vector<std::int32_t> expert;
  if (instance.ep <= instance.tp) {
    expert = {0};
  } else {
    if (instance.tp > 1) expert.push_back(0);
    expert.push_back(static_cast<std::int32_t>(dimensions - 1));
  }
  return {std::vector{0}, expert};
}

InstancePlan PlanInstance(const ClusterSpec& cluster, std::size_t index) {
  const InstanceSpec& instance = cluster.instances[index];
  const ModelShape& model = *instance.model;
  InstancePlan plan;
  plan.num_npus = static_cast<std::int32_t>(instance.num_npus());
  plan.host_device = static_cast<std::int32_t>(instance.node);
  const Sharding sharding{.tp = instance.tp,
                          .pp = instance.pp,
                          .ep = instance.ep,
                          .bytes_per_weight = instance.bytes_per_element};
  plan.weight_bytes = WeightBytes(model, sharding);
  plan.kv_bytes_per_block = 2 * model.kv_size() * model.num_layers * instance.kv_bytes_per_element /
                            instance.num_npus() * instance.scheduler.block_size;
  if (plan.kv_bytes_per_block <= 0) {
    ThrowInstance(cluster, index, "num_npus", plan.num_npus, "leaves less than one byte of KV a token");
  }
  const std::int64_t usable =
      static_cast<std::int64_t>(instance.npu_mem_gib * kGiB * instance.npu_mem_util) - plan.weight_bytes;
  plan.scheduler = instance.scheduler;
  plan.scheduler.num_blocks = usable / plan.kv_bytes_per_block;
  if (instance.num_gpu_blocks) {
    plan.scheduler.num_blocks = *instance.num_gpu_blocks;
  } else if (usable < plan.kv_bytes_per_block) {
    ThrowInstance(cluster, index, "npu_mem", usable,
                  "bytes are left for the KV cache after " + std::to_string(plan.weight_bytes) +
                      " bytes of weights; one block takes " + std::to_string(plan.kv_bytes_per_block));
  }
  plan.scheduler.max_num_batched_tokens =
      std::min(plan.scheduler.max_num_batched_tokens, model.max_position_embeddings);
  CheckSchedulerConfig(plan.scheduler);
  return plan;
}

}  // namespace

WeightPlace Placement::Of(std::int64_t block, const std::string& layer) const {
  if (const auto found = layers.find(layer); found != layers.end()) return found->second;
  if (const auto found = blocks.find(block); found != blocks.end()) return found->second;
  return by_default;
}

bool Placement::all_on_npu() const {
  const auto on_npu = [](const auto& entry) { return entry.second.kind == WeightPlace::Kind::kNpu; };
  return by_default.kind == WeightPlace::Kind::kNpu && std::all_of(blocks.begin(), blocks.end(), on_npu) &&
         std::all_of(layers.begin(), layers.end(), on_npu);
}

ClusterPlan PlanCluster(const ClusterSpec& cluster) {
  ClusterPlan plan;
  std::set<std::string> groups;
  for (std::size_t i = 0; i < cluster.instances.size(); ++i) {
    CheckInstance(cluster, i);
    if (!cluster.instances[i].dp_group.empty()) groups.insert(cluster.instances[i].dp_group);
  }
  for (const std::string& group : groups) CheckGroup(cluster, group);

  const std::vector<std::int64_t> sizes = DimensionSizes(cluster, groups.empty() ? "" : *groups.begin());
  FabricSpec& fabric = plan.fabric;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    fabric.dimensions.push_back(
        {.size = sizes[d],
         .latency_ns = PerDimension(cluster, cluster.link_latency_ns, d, "link_latency"),
         .gib_per_s = PerDimension(cluster, cluster.link_gib_per_s, d, "link_bw")});
  }
  std::int32_t next_npu = 0;
  std::map<std::string, std::int64_t> groups_before;  // members planned so far
  for (std::size_t i = 0; i < cluster.instances.size(); ++i) {
    const InstanceSpec& instance = cluster.instances[i];
    InstancePlan instance_plan = PlanInstance(cluster, i);
    const std::int32_t ids = instance_plan.num_npus * (instance.role == Role::kPrefill ? 2 : 1);
    instance_plan.first_npu = instance_plan.start_npu = next_npu;
    instance_plan.end_npu = next_npu + ids - 1;
    const auto members = static_cast<std::int64_t>(
        instance.dp_group.empty() ? 1 : GroupMembers(cluster, instance.dp_group).size());
    instance_plan.local_ep = instance.model->moe() ? instance.ep / members : 1;
    instance_plan.first_expert_group = instance_plan.local_ep * groups_before[instance.dp_group];
    if (!instance.dp_group.empty()) ++groups_before[instance.dp_group];
    for (std::int32_t n = 0; n < ids; ++n) {
      plan.instance_of_npu.push_back(static_cast<std::int32_t>(i));
      fabric.scopes.push_back(ScopesOf(instance, sizes.size()));
    }
    next_npu += ids;
    plan.instances.push_back(std::move(instance_plan));
  }
  fabric.num_npus = next_npu;
  std::int64_t places = 1;
  for (const std::int64_t size : sizes) places *= size;
  if (places != next_npu) {
    ThrowBadInput(
        {.file = cluster.source,
         .field = "nodes",
         .value = std::to_string(next_npu) + " NPUs",
         .problem = "do not fill a regular network of " + std::to_string(places) +
                    ": instances of different shape, or more than one dp_group, are not simulated"});
  }
  // An idle NPU is asked at every event of the others, and finds new requests then: only where that cannot be
  // do the events in between not matter.
  const InstanceSpec& only = cluster.instances.front();
  fabric.only_ends_matter =
      cluster.instances.size() == 1 && only.pp == 1 && only.dp_group.empty() && only.role == Role::kWhole;
  // The reference takes the first node's host memory for all nodes, one queue a node.
  const HostMemory& host = cluster.nodes.front();
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    fabric.devices.push_back({.latency_ns = static_cast<std::int64_t>(host.latency_ns),
                              .bytes_per_ns = static_cast<std::int64_t>(host.gb_per_s)});
  }
  plan.first_cxl_device = static_cast<std::int32_t>(fabric.devices.size());
  for (std::int32_t i = 0; i < cluster.num_cxl_devices; ++i) fabric.devices.push_back(cluster.cxl);
  // And the device memory of the last node's first instance for all reductions.
  const std::int64_t last_node = static_cast<std::int64_t>(cluster.nodes.size()) - 1;
  for (const InstanceSpec& instance : cluster.instances) {
    if (instance.node != last_node) continue;
    fabric.reduce_bytes_per_s =
        static_cast<double>(static_cast<std::int64_t>(instance.npu_mem_gb_per_s)) * 1e9;
    break;
  }
  return plan;
}

}  // namespace plumbline
