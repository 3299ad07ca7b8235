#include "tools/engine_flags.h"

#include <CLI/CLI.hpp>

#include "engine/base/error.h"
#include "tools/flag_checks.h"

namespace plumbline {

EngineFlags::EngineFlags(CLI::App& command) {
  CLI::Option_group& group = *command.add_option_group("Engine");
  group.add_option("--engine", spec_.kind, "Engine kind: a built-in one or a plug-in's")
      ->capture_default_str();
  group.add_option("--model", spec_.model, "Model folder or model id, as the engine takes it")->required();
  group.add_option("--tensor-parallel-size", spec_.tensor_parallel_size, "Tensor parallel ranks")
      ->check(AtLeast(1))
      ->capture_default_str();
  group.add_option("--data-parallel-size", spec_.data_parallel_size, "Data parallel engines")
      ->check(AtLeast(1))
      ->capture_default_str();
  group.add_flag("--enable-expert-parallel", spec_.enable_expert_parallel, "Spread experts over the ranks");
  group.add_flag("--disable-custom-all-reduce", spec_.disable_custom_all_reduce,
                 "Do not use the engine's own all-reduce");
  group.add_option("--max-num-seqs", spec_.max_num_seqs, "Most requests running at once")
      ->check(AtLeast(1))
      ->capture_default_str();
  group.add_option("--max-num-batched-tokens", spec_.max_num_batched_tokens, "Token budget of a step")
      ->check(AtLeast(1))
      ->capture_default_str();
  group
      .add_option("--max-model-len", spec_.max_model_len,
                  "Longest prompt and output (default: the model's own)")
      ->check(AtLeast(1));
  group.add_option("--dtype", spec_.dtype, "Type of weights and activations")->capture_default_str();
  group.add_option("--kv-cache-dtype", spec_.kv_cache_dtype, "Type of the KV cache")->capture_default_str();
  group
      .add_option("--kv-cache-memory-bytes", spec_.kv_cache_memory_bytes,
                  "Bytes of the KV cache (default: the engine's own rule)")
      ->check(AtLeast(1));
  group.add_option("--block-size", spec_.block_size, "Tokens in a KV block (default: the engine's own)")
      ->check(AtLeast(1));
  group.add_option("--seed", spec_.seed, "Seed of sampling and of dummy weights")->capture_default_str();
  group.add_option("--load-format", spec_.load_format, "auto, or dummy for random weights")
      ->capture_default_str();
  group.add_flag("--skip-tokenizer-init", spec_.skip_tokenizer_init, "Boot without a tokenizer");
  group.add_flag("--enforce-eager", spec_.enforce_eager, "No compilation and no CUDA graphs");
  group.add_flag("--record-gate-stats", spec_.record_gate_stats, "Record which experts are activated");
  group.add_option("--python", spec_.python,
                   "Interpreter of engines that run in Python (default: PLUMBLINE_PYTHON, else python3)");
  group.add_option("--engine-arg", engine_args_, "KEY=VALUE for this engine kind; may be repeated")
      ->default_str("")
      ->allow_extra_args(false);
}

EngineSpec EngineFlags::Spec() const {
  EngineSpec spec = spec_;
  for (const std::string& argument : engine_args_) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) {
      ThrowBadInput({.field = "--engine-arg", .value = argument, .problem = "must be KEY=VALUE"});
    }
    const std::string key = argument.substr(0, equals);
    if (!spec.extra.emplace(key, argument.substr(equals + 1)).second) {
      ThrowBadInput({.field = "--engine-arg", .value = key, .problem = "is given twice"});
    }
  }
  return spec;
}

}  // namespace plumbline
