#include "engine/torch/torch_facts.h"

#include <fmt/format.h>

#include "engine/base/json.h"
#include "engine/kernels/cpu/isa.h"
#include "engine/torch/checkpoint/tensor_list.h"
#include "engine/torch/system_memory.h"

namespace plumbline {
namespace {

Json ResolvedConfig(const EngineSpec& spec, const ModelConfig& config, const EngineSettings& settings) {
  return {{"model_config",
           {{"model", spec.model},
            {"architecture", config.architecture},
            {"dtype", settings.dtype_name},
            {"max_model_len", settings.max_model_len},
            {"vocab_size", config.vocab_size},
            {"hidden_size", config.hidden_size},
            {"num_hidden_layers", config.num_hidden_layers},
            {"num_attention_heads", config.num_attention_heads},
            {"num_key_value_heads", config.num_key_value_heads},
            {"head_dim", config.head_dim},
            {"parameters", CountParameters(config)},
            {"seed", spec.seed},
            // True of this engine, asked for or not: it has neither graphs nor a tokenizer.
            {"enforce_eager", true},
            {"skip_tokenizer_init", true}}},
          {"cache_config",
           {{"block_size", settings.block_size},
            {"cache_dtype", settings.dtype_name},
            {"kv_cache_memory_bytes", settings.kv_cache_memory_bytes},
            {"num_gpu_blocks", settings.num_blocks},
            {"enable_prefix_caching", spec.enable_prefix_caching}}},
          {"parallel_config",
           {{"tensor_parallel_size", 1},
            {"pipeline_parallel_size", 1},
            {"data_parallel_size", 1},
            {"enable_expert_parallel", false},
            {"disable_custom_all_reduce", true}}},
          {"scheduler_config",
           {{"max_num_seqs", spec.max_num_seqs},
            {"max_num_batched_tokens", spec.max_num_batched_tokens},
            {"enable_chunked_prefill", spec.enable_chunked_prefill},
            {"reserve_full_isl", spec.reserve_full_isl},
            {"long_prefill_token_threshold", spec.long_prefill_token_threshold}}},
          {"load_config", {{"load_format", settings.dummy_weights ? "dummy" : "safetensors"}}}};
}

Json Hardware(const EngineSettings& settings, const BlasSpeed& blas) {
  const SystemMemory memory = ReadSystemMemory();
  const std::string cpu_name = ReadCpuName();
  Json hardware = {{"device_count", 1},
                   {"device_name", cpu_name.empty() ? "CPU" : cpu_name},
                   {"device_total_memory_bytes", nullptr},
                   {"threads", settings.threads},
                   {"instruction_set", cpu::Name(cpu::BestIsa())},
                   {"torch_version", blas.torch_version},
                   {"cuda_version", nullptr},
                   {"blas", blas.blas},
                   {"blas_gflops", blas.gflops}};
  if (memory.total_bytes) hardware["device_total_memory_bytes"] = *memory.total_bytes;
  return hardware;
}

}  // namespace

Facts DescribeTorchEngine(const EngineSpec& spec, const ModelConfig& config, const EngineSettings& settings,
                          const BlasSpeed& blas) {
  Facts facts;
  facts.engine = "torch";
  facts.engine_version = "libtorch " + blas.torch_version;
  facts.model = spec.model;
  facts.dtype = settings.dtype_name;
  facts.kv_cache_dtype = settings.dtype_name;
  facts.vocab_size = config.vocab_size;
  facts.max_model_len = settings.max_model_len;
  facts.kv_cache_memory_bytes = settings.kv_cache_memory_bytes;
  facts.resolved_config_json = PrintJson(ResolvedConfig(spec, config, settings));
  facts.hardware_json = PrintJson(Hardware(settings, blas));
  facts.execution_json = PrintJson({{"status", "complete"},
                                    {"graph_policy", "none"},
                                    {"enforce_eager", true},
                                    {"instruction_set", cpu::Name(cpu::BestIsa())},
                                    {"threads", settings.threads}});
  if (blas.slow) {
    facts.warnings.push_back(
        fmt::format("libtorch's float32 products reach {:.1f} GF/s, as slow as the reference BLAS: install "
                    "libopenblas0-openmp (this engine's own products do not use it)",
                    blas.gflops));
  }
  for (const std::string& key : config.unread_keys) {
    facts.warnings.push_back("config.json: '" + key + "' is not read by this engine");
  }
  return facts;
}

}  // namespace plumbline
