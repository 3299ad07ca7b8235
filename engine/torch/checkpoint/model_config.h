#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

// Rotary embedding: default, or Llama 3's scaling of the low frequencies.
struct RopeConfig {
  double theta = 10000;
  bool llama3 = false;
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 1;
  std::int64_t original_max_position_embeddings = 0;
};

// The shape of a dense decoder of the Llama, Qwen2 or Qwen3 family, checked: every size is positive and small
// enough that products of two of them fit in 63 bits, heads divide evenly, head_dim is even.
struct ModelConfig {
  std::string architecture{};  // "LlamaForCausalLM", ...
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  RopeConfig rope{};
  bool tie_word_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;  // of the attention's output projection
  bool mlp_bias = false;
  bool qk_norm = false;           // an RMS norm of every q and k head before the rotation
  std::string dtype = "float32";  // as the file names it
  // Members of the file that nothing here reads. The engine reports them, so that a setting that was meant to
  // matter is seen.
  std::vector<std::string> unread_keys{};

  std::int64_t QuerySize() const { return num_attention_heads * head_dim; }
  std::int64_t KeyValueSize() const { return num_key_value_heads * head_dim; }
};

// "LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM".
std::string KnownArchitectures();

// Reads the text of a config.json as transformers 4 (torch_dtype, rope_theta, rope_scaling) or 5 (dtype,
// rope_parameters) writes it. A feature that would change the result and is not supported (sliding window,
// other rope types, quantization, experts, ...) is refused by name. Throws Error(kBadInput).
ModelConfig ParseModelConfig(std::string_view text, const std::string& file);

// `<folder>/config.json`.
ModelConfig ReadModelConfig(const std::string& model_folder);

}  // namespace plumbline
