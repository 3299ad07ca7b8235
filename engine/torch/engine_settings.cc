#include "engine/torch/engine_settings.h"

#include <omp.h>
#include <algorithm>
#include <charconv>
#include <limits>

#include "engine/base/error.h"
#include "engine/kernels/cpu/kernels.h"
#include "engine/torch/model_runner.h"

namespace plumbline {
namespace {

constexpr int kMostThreads = 256;

void RefuseFlag(const std::string& flag, const std::string& value, const std::string& problem,
                const std::string& accepted) {
  ThrowBadInput({.field = flag, .value = value, .problem = problem, .accepted = accepted});
}

void RequireOneOf(const std::string& flag, const std::string& value,
                  std::initializer_list<const char*> accepted) {
  std::string list;
  for (const char* one : accepted) {
    if (value == one) return;
    list += (list.empty() ? "" : ", ") + std::string(one);
  }
  RefuseFlag(flag, value, "the torch engine does not have this", list);
}

int ReadThreads(const EngineSpec& spec) {
  const auto found = spec.extra.find("threads");
  if (found == spec.extra.end()) return std::min(omp_get_max_threads(), kMostThreads);
  const std::string& text = found->second;
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1 || threads > kMostThreads) {
    RefuseFlag("--engine-arg threads", text, "is no number of threads",
               "1 to " + std::to_string(kMostThreads));
  }
  return threads;
}

void ResolveDtype(const EngineSpec& spec, const ModelConfig& config, EngineSettings& settings) {
  settings.dtype_name = spec.dtype == "auto" ? config.dtype : spec.dtype;
  if (settings.dtype_name == "float32") {
    settings.dtype = cpu::Dtype::kFloat32;
  } else if (settings.dtype_name == "bfloat16") {
    settings.dtype = cpu::Dtype::kBFloat16;
  } else {
    RefuseFlag("--dtype auto", settings.dtype_name,
               "takes config.json's dtype, which the torch engine does not compute in",
               "--dtype float32, bfloat16");
  }
  if (spec.kv_cache_dtype != "auto" && spec.kv_cache_dtype != settings.dtype_name) {
    RefuseFlag("--kv-cache-dtype", spec.kv_cache_dtype,
               "the torch engine's KV cache has the dtype of the model", "auto, " + settings.dtype_name);
  }
}

void ResolveCache(const EngineSpec& spec, const ModelConfig& config, EngineSettings& settings) {
  settings.block_size = spec.block_size.value_or(kDefaultBlockSize);
  settings.kv_cache_memory_bytes = spec.kv_cache_memory_bytes.value_or(kDefaultKvCacheBytes);
  const std::int64_t block_bytes = KvBlockBytes(config, settings.block_size, settings.dtype);
  settings.num_blocks = settings.kv_cache_memory_bytes / block_bytes;
  if (settings.num_blocks < 1 || settings.num_blocks > std::numeric_limits<std::int32_t>::max()) {
    RefuseFlag("--kv-cache-memory-bytes", std::to_string(settings.kv_cache_memory_bytes),
               "makes " + std::to_string(settings.num_blocks) + " KV blocks of " +
                   std::to_string(block_bytes) + " bytes",
               "room for 1 to 2147483647 blocks");
  }
}

}  // namespace

void CheckTorchSpec(const EngineSpec& spec) {
  const auto one_only = [](const std::string& flag, std::int64_t value) {
    if (value != 1) RefuseFlag(flag, std::to_string(value), "the torch engine runs on one rank", "1");
  };
  one_only("--tensor-parallel-size", spec.tensor_parallel_size);
  one_only("--data-parallel-size", spec.data_parallel_size);
  if (spec.enable_expert_parallel) {
    RefuseFlag("--enable-expert-parallel", "", "the torch engine has dense models only", "leaving it out");
  }
  if (spec.record_gate_stats) {
    RefuseFlag("--record-gate-stats", "", "the torch engine has dense models only", "leaving it out");
  }
  RequireOneOf("--dtype", spec.dtype, {"auto", "float32", "bfloat16"});
  RequireOneOf("--kv-cache-dtype", spec.kv_cache_dtype, {"auto", "float32", "bfloat16"});
  RequireOneOf("--load-format", spec.load_format, {"auto", "safetensors", "dummy"});
  if (spec.block_size && (*spec.block_size < cpu::kBlockSizeMultiple || *spec.block_size > 4096 ||
                          *spec.block_size % cpu::kBlockSizeMultiple != 0)) {
    RefuseFlag("--block-size", std::to_string(*spec.block_size), "is no block size of the torch engine",
               "multiples of 16 up to 4096");
  }
  const auto positive = [](const std::string& flag, std::int64_t value) {
    if (value < 1) RefuseFlag(flag, std::to_string(value), "must be above 0", "");
  };
  positive("--max-num-seqs", spec.max_num_seqs);
  positive("--max-num-batched-tokens", spec.max_num_batched_tokens);
  positive("--max-model-len", spec.max_model_len.value_or(1));
  positive("--kv-cache-memory-bytes", spec.kv_cache_memory_bytes.value_or(1));
  if (spec.model.empty())
    RefuseFlag("--model", "", "is needed by the torch engine", "a Hugging Face model folder");
  for (const auto& [key, value] : spec.extra) {
    if (key != "threads") RefuseFlag("--engine-arg", key, "is unknown to the torch engine", kTorchEngineArgs);
  }
  ReadThreads(spec);
}

EngineSettings ResolveSettings(const EngineSpec& spec, const ModelConfig& config) {
  EngineSettings settings;
  ResolveDtype(spec, config, settings);
  if (config.head_dim % cpu::kHeadDimMultiple != 0 || config.head_dim > cpu::kMaxHeadDim) {
    RefuseFlag("config.json head_dim", std::to_string(config.head_dim), "is no head size of the torch engine",
               "multiples of 16 up to 256");
  }
  for (const std::int64_t inputs : {config.hidden_size, config.intermediate_size, config.QuerySize()}) {
    if (inputs > cpu::PackedWeight::kMaxInputs) {
      RefuseFlag("config.json", std::to_string(inputs), "has a layer wider than the torch engine's products",
                 "at most " + std::to_string(cpu::PackedWeight::kMaxInputs));
    }
  }
  settings.max_model_len = spec.max_model_len.value_or(config.max_position_embeddings);
  if (settings.max_model_len > config.max_position_embeddings) {
    RefuseFlag("--max-model-len", std::to_string(settings.max_model_len),
               "is more than the model was made for",
               "at most max_position_embeddings " + std::to_string(config.max_position_embeddings));
  }
  ResolveCache(spec, config, settings);
  settings.dummy_weights = spec.load_format == "dummy";
  settings.threads = ReadThreads(spec);
  return settings;
}

}  // namespace plumbline
