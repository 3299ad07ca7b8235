#include "engine/api/engine_arguments.h"

namespace plumbline {
namespace {

Json OrNull(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json EngineArguments(const EngineSpec& spec) {
  return {
      {"model", spec.model},
      {"tensor_parallel_size", spec.tensor_parallel_size},
      {"data_parallel_size", spec.data_parallel_size},
      {"enable_expert_parallel", spec.enable_expert_parallel},
      {"max_num_seqs", spec.max_num_seqs},
      {"max_num_batched_tokens", spec.max_num_batched_tokens},
      {"max_model_len", OrNull(spec.max_model_len)},
      {"dtype", spec.dtype},
      {"kv_cache_dtype", spec.kv_cache_dtype},
      {"seed", spec.seed},
      {"load_format", spec.load_format},
      {"skip_tokenizer_init", spec.skip_tokenizer_init},
      {"enforce_eager", spec.enforce_eager},
      {"kv_cache_memory_bytes", OrNull(spec.kv_cache_memory_bytes)},
      {"disable_custom_all_reduce", spec.disable_custom_all_reduce},
      {"block_size", OrNull(spec.block_size)},
      {"enable_prefix_caching", spec.enable_prefix_caching},
      {"enable_chunked_prefill", spec.enable_chunked_prefill},
  };
}

}  // namespace plumbline
