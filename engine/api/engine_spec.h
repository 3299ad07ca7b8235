#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace plumbline {

// What was asked for: the engine flags of `plumb run` under their own names, with the reference harness's
// defaults. What an engine made of it stands in Facts.
struct EngineSpec {
  std::string kind = "torch";
  std::string model;
  std::int64_t tensor_parallel_size = 1;
  std::int64_t data_parallel_size = 1;
  bool enable_expert_parallel = false;
  bool disable_custom_all_reduce = false;
  std::int64_t max_num_seqs = 128;
  std::int64_t max_num_batched_tokens = 2048;
  std::optional<std::int64_t> max_model_len;
  std::string dtype = "bfloat16";
  std::string kv_cache_dtype = "auto";
  std::optional<std::int64_t> kv_cache_memory_bytes;
  std::int64_t seed = 42;
  std::string load_format = "auto";
  bool skip_tokenizer_init = false;
  bool enforce_eager = false;
  bool record_gate_stats = false;
  std::optional<std::int64_t> block_size;
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  bool reserve_full_isl = true;
  std::int64_t long_prefill_token_threshold = 0;  // 0 = off
  // The interpreter of an engine that runs in Python; empty = PLUMBLINE_PYTHON, else python3.
  std::string python;
  // Where an engine with processes of its own leaves their log (engine.log); empty = it is not kept. Not a
  // setting: whoever runs the engine fills it in.
  std::string log_folder;
  // Anything else an engine understands (`--engine-arg KEY=VALUE`). A key that the engine does not know is an
  // error that lists the known ones.
  std::map<std::string, std::string> extra;
};

}  // namespace plumbline
