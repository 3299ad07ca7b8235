#include "engine/vllm/vllm_facts.h"

#include "engine/base/error.h"

namespace plumbline {
namespace {

KvCapacity Capacity(const JsonView& capacity) {
  KvCapacity result;
  if (capacity.String("status") != "complete") {
    result.unknown_reason = capacity.MaybeString("reason").value_or("vLLM gave no reason");
    return result;
  }
  for (const JsonView& rank : capacity.Array("per_engine")) {
    result.per_engine.push_back({.data_parallel_rank = rank.Int("data_parallel_rank"),
                                 .num_gpu_blocks = rank.Int("num_gpu_blocks"),
                                 .block_size = rank.Int("block_size"),
                                 .kv_cache_size_tokens = rank.MaybeInt("kv_cache_size_tokens"),
                                 .tensor_parallel_size = rank.Int("tensor_parallel_size"),
                                 .pipeline_parallel_size = rank.Int("pipeline_parallel_size"),
                                 .data_parallel_size = rank.Int("data_parallel_size"),
                                 .world_size = rank.Int("world_size")});
  }
  return result;
}

std::string ObjectText(const JsonView& json, const std::string& key) {
  return PrintJson(json.Object(key).json());
}

Facts Read(const JsonView& json) {
  Facts facts;
  facts.engine = "vllm";
  facts.engine_version = json.String("vllm_version");
  facts.model = json.String("model");
  facts.dtype = json.String("dtype");
  facts.kv_cache_dtype = json.String("kv_cache_dtype");
  facts.vocab_size = json.MaybeInt("vocab_size");
  facts.max_model_len = json.MaybeInt("max_model_len");
  facts.max_num_seqs = json.MaybeInt("max_num_seqs");
  facts.max_num_batched_tokens = json.MaybeInt("max_num_batched_tokens");
  facts.enable_prefix_caching = json.MaybeBool("enable_prefix_caching");
  facts.kv_cache_memory_bytes = json.MaybeInt("kv_cache_memory_bytes");
  facts.gpu_memory_utilization = json.MaybeDouble("gpu_memory_utilization");
  const JsonView capacity = json.Object("capacity");
  facts.kv_capacity = Capacity(capacity);
  Json kv_cache = json.Object("kv_cache").json();
  kv_cache["capacity_observer"] = capacity.Object("observer").json();
  kv_cache["capacity_observer"]["runtime_version"] = facts.engine_version;
  facts.kv_cache_json = PrintJson(kv_cache);
  facts.engine_kwargs_json = ObjectText(json, "engine_kwargs");
  facts.resolved_config_json = ObjectText(json, "resolved_config");
  facts.hardware_json = ObjectText(json, "hardware");
  facts.execution_json = ObjectText(json, "execution");
  for (const JsonView& warning : json.Array("warnings")) facts.warnings.push_back(warning.AsString());
  return facts;
}

}  // namespace

Facts VllmFacts(const Json& facts) {
  try {
    return Read(JsonView(facts, "vLLM worker"));
  } catch (const Error& error) {
    throw Error(ExitCode::kEngineFailed, error.what());
  }
}

}  // namespace plumbline
