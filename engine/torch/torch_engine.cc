#include "engine/torch/torch_engine.h"

#include <fmt/format.h>
#include <algorithm>

#include "engine/base/error.h"
#include "engine/core/core_engine.h"
#include "engine/torch/engine_settings.h"
#include "engine/torch/model_runner.h"
#include "engine/torch/system_memory.h"
#include "engine/torch/torch_facts.h"

namespace plumbline {
namespace {

// Running out of memory in the middle of a run kills the process without a word; it is refused here instead.
void RequireMemory(const ModelConfig& config, const EngineSettings& settings) {
  const std::int64_t weights = CountParameters(config) * cpu::SizeOf(settings.dtype);
  const std::optional<std::int64_t> available = ReadSystemMemory().available_bytes;
  if (!available || weights + settings.kv_cache_memory_bytes <= *available) return;
  throw Error(ExitCode::kEngineFailed,
              fmt::format("the torch engine needs {:.2f} GiB for weights and {:.2f} GiB for the KV cache "
                          "(--kv-cache-memory-bytes), but {:.2f} GiB are available",
                          static_cast<double>(weights) * 0x1p-30,
                          static_cast<double>(settings.kv_cache_memory_bytes) * 0x1p-30,
                          static_cast<double>(*available) * 0x1p-30));
}

SchedulerConfig SchedulerOf(const EngineSpec& spec, const EngineSettings& settings) {
  return {.max_num_seqs = spec.max_num_seqs,
          .max_num_batched_tokens = spec.max_num_batched_tokens,
          .block_size = settings.block_size,
          .num_blocks = settings.num_blocks,
          .long_prefill_token_threshold = spec.long_prefill_token_threshold,
          .enable_chunked_prefill = spec.enable_chunked_prefill,
          .enable_prefix_caching = spec.enable_prefix_caching,
          .reserve_full_isl = spec.reserve_full_isl};
}

}  // namespace

std::unique_ptr<Engine> BootTorchEngine(const EngineSpec& spec) {
  CheckTorchSpec(spec);
  const ModelConfig config = ReadModelConfig(spec.model);
  const EngineSettings settings = ResolveSettings(spec, config);
  const SchedulerConfig scheduler = SchedulerOf(spec, settings);
  CheckSchedulerConfig(scheduler);
  RequireMemory(config, settings);
  const std::unique_ptr<WeightSource> source = settings.dummy_weights
                                                   ? DummyWeights(static_cast<std::uint64_t>(spec.seed))
                                                   : OpenCheckpoint(spec.model, config);
  const ModelRunnerSizes sizes = {.max_tokens = spec.max_num_batched_tokens,
                                  .max_sequences = std::min(spec.max_num_seqs, spec.max_num_batched_tokens),
                                  .max_model_len = settings.max_model_len,
                                  .block_size = settings.block_size,
                                  .num_blocks = settings.num_blocks,
                                  .threads = settings.threads};
  CoreEngineParts parts;
  parts.facts = DescribeTorchEngine(spec, config, settings, MeasureBlas());
  parts.scheduler = scheduler;
  parts.executor = std::make_unique<ModelRunner>(config, LoadWeights(config, *source, settings.dtype), sizes);
  return MakeCoreEngine(std::move(parts));
}

void RegisterTorchEngine(EngineRegistry& registry) {
  registry.Register(
      {.kind = "torch",
       .help = std::string("Llama, Qwen2 and Qwen3 models on this machine's CPU. --engine-arg: ") +
               kTorchEngineArgs,
       .check = CheckTorchSpec,
       .boot = BootTorchEngine});
}

}  // namespace plumbline
