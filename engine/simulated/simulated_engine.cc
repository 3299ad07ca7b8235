#include "engine/simulated/simulated_engine.h"

#include <utility>

#include "engine/simulated/simulated_loop.h"

namespace plumbline {

std::unique_ptr<Engine> MakeSimulatedEngine(std::shared_ptr<const ClusterSpec> cluster,
                                            const SimulationOptions& options,
                                            std::optional<std::int64_t> max_model_len) {
  const InstanceSpec& first = cluster->instances.front();
  RequestLimits limits;
  limits.vocab_size = first.model->vocab_size;
  limits.max_model_len = max_model_len;
  auto loop = std::make_unique<SimulatedLoop>(cluster, options, limits);
  Facts facts;
  facts.engine = "simulated";
  facts.engine_version = "1";
  facts.model = first.model_name;
  facts.dtype = first.model->torch_dtype;
  facts.vocab_size = limits.vocab_size;
  facts.max_model_len = max_model_len;
  facts.max_num_seqs = first.scheduler.max_num_seqs;
  facts.enable_prefix_caching = first.scheduler.enable_prefix_caching;
  facts.gpu_memory_utilization = first.npu_mem_util;
  const ClusterPlan& plan = loop->simulation().plan();
  facts.max_num_batched_tokens = plan.instances.front().scheduler.max_num_batched_tokens;
  const auto ranks = static_cast<std::int64_t>(plan.instances.size());
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const InstanceSpec& spec = cluster->instances[static_cast<std::size_t>(rank)];
    const SchedulerConfig& config = plan.instances[static_cast<std::size_t>(rank)].scheduler;
    facts.kv_capacity.per_engine.push_back({.data_parallel_rank = rank,
                                            .num_gpu_blocks = config.num_blocks,
                                            .block_size = config.block_size,
                                            .kv_cache_size_tokens = config.num_blocks * config.block_size,
                                            .tensor_parallel_size = spec.tp,
                                            .pipeline_parallel_size = spec.pp,
                                            .data_parallel_size = ranks,
                                            .world_size = spec.num_npus()});
  }
  facts.warnings = loop->simulation().Warnings();
  return MakeEngine(std::move(facts), std::move(loop), TimeMode::kVirtual);
}

}  // namespace plumbline
