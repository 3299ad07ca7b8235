#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/kv_capacity.h"

namespace plumbline {

// What an engine resolved its spec to. Fixed from boot to shutdown. Absent = the engine cannot tell.
struct Facts {
  std::string engine;          // kind: "torch", "scripted", "simulated", "vllm", "openai"
  std::string engine_version;  // of the engine's own code and library
  std::string model;           // as the engine calls it
  std::string dtype;
  std::string kv_cache_dtype;
  std::optional<std::int64_t> vocab_size;
  std::optional<std::int64_t> max_model_len;
  std::optional<std::int64_t> max_num_seqs;
  std::optional<std::int64_t> max_num_batched_tokens;
  std::optional<bool> enable_prefix_caching;
  std::optional<std::int64_t> kv_cache_memory_bytes;
  std::optional<double> gpu_memory_utilization;
  KvCapacity kv_capacity;
  // JSON objects as text, written to meta.json as they are. Empty = not known.
  std::string engine_kwargs_json;     // what was handed to an engine with an argument object of its own
  std::string kv_cache_json;          // the raw fields of an engine that tells more than kv_capacity holds
  std::string resolved_config_json;   // one key a sub-config
  std::string hardware_json;          // device names, memory, cores, instruction sets, library versions
  std::string execution_json;         // effective graph policy, or {"status":"unknown","reason":...}
  std::vector<std::string> warnings;  // shown to the user and kept in meta.json, e.g. a slow BLAS
};

// Totals since boot, and the state at the last step. Fields that the engine cannot tell stay absent.
struct Counters {
  std::int64_t prompt_tokens = 0;  // counted once a request, when its prefill completes
  std::int64_t prompt_tokens_computed = 0;
  std::int64_t prompt_tokens_cached = 0;
  std::int64_t generation_tokens = 0;
  std::int64_t preemptions = 0;
  std::optional<std::int64_t> running{};
  std::optional<std::int64_t> waiting{};
  std::optional<std::int64_t> kv_blocks_used{};
  std::optional<double> kv_cache_usage{};  // 0 to 1
};

// One step of an engine that has a scheduler of its own (steps.csv).
struct StepRecord {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int32_t prefill_tokens = 0;
  std::int32_t decodes = 0;
  std::int32_t running = 0;
  std::int32_t waiting = 0;
  std::int32_t kv_blocks_used = 0;
  std::int32_t preempted = 0;
};

}  // namespace plumbline
