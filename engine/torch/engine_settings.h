#pragma once

#include <cstdint>
#include <string>

#include "engine/api/engine_spec.h"
#include "engine/kernels/cpu/dtype.h"
#include "engine/torch/checkpoint/model_config.h"

namespace plumbline {

// What the torch engine made of a spec and a model.
struct EngineSettings {
  cpu::Dtype dtype = cpu::Dtype::kFloat32;
  std::string dtype_name;
  std::int64_t max_model_len = 0;
  std::int64_t block_size = 0;
  std::int64_t kv_cache_memory_bytes = 0;
  std::int64_t num_blocks = 0;
  bool dummy_weights = false;
  int threads = 1;
};

// Without --kv-cache-memory-bytes: a fixed size, never a share of the free memory, which would change from
// run to run.
constexpr std::int64_t kDefaultKvCacheBytes = std::int64_t{1} << 30;
constexpr std::int64_t kDefaultBlockSize = 16;

// The accepted --engine-arg keys, for help and messages.
constexpr const char* kTorchEngineArgs = "threads (of a step; default: all cores that this process may use)";

// Refuses by name what this engine cannot honour, from the spec alone. A flag at its default is never
// refused. Throws Error(kBadInput).
void CheckTorchSpec(const EngineSpec& spec);

// Throws Error(kBadInput) naming the flag or the config.json member: a dtype or head size that the kernels do
// not have, a max_model_len above the model's, a KV cache smaller than one block.
EngineSettings ResolveSettings(const EngineSpec& spec, const ModelConfig& config);

}  // namespace plumbline
