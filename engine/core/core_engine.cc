#include "engine/core/core_engine.h"

#include <utility>

#include "engine/core/step_loop.h"

namespace plumbline {
namespace {

std::unique_ptr<Engine> Make(CoreEngineParts parts, TimeMode mode) {
  const SchedulerConfig& scheduler = parts.scheduler;
  CheckSchedulerConfig(scheduler);
  Facts& facts = parts.facts;
  facts.max_num_seqs = scheduler.max_num_seqs;
  facts.max_num_batched_tokens = scheduler.max_num_batched_tokens;
  facts.enable_prefix_caching = scheduler.enable_prefix_caching;
  facts.kv_capacity = {.per_engine = {{.num_gpu_blocks = scheduler.num_blocks,
                                       .block_size = scheduler.block_size,
                                       .kv_cache_size_tokens = scheduler.num_blocks * scheduler.block_size}},
                       .unknown_reason = {}};
  auto loop = std::make_unique<StepLoop>(scheduler, parts.policy, RequestLimits(facts),
                                         std::move(parts.executor), mode);
  return MakeEngine(std::move(facts), std::move(loop), mode);
}

}  // namespace

std::unique_ptr<Engine> MakeCoreEngine(CoreEngineParts parts) {
  return Make(std::move(parts), TimeMode::kReal);
}

std::unique_ptr<Engine> MakeVirtualCoreEngine(CoreEngineParts parts) {
  return Make(std::move(parts), TimeMode::kVirtual);
}

}  // namespace plumbline
