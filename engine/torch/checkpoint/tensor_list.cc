#include "engine/torch/checkpoint/tensor_list.h"

namespace plumbline {

using Role = TensorSpec::Role;

std::int64_t TensorSpec::Elements() const {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

std::string LayerTensor(std::int64_t layer, const std::string& part) {
  return "model.layers." + std::to_string(layer) + "." + part;
}

std::vector<TensorSpec> ListTensors(const ModelConfig& config) {
  std::vector<TensorSpec> tensors;
  const auto projection = [&](const std::string& name, std::int64_t out, std::int64_t in, bool bias,
                              Role role = Role::kProjection) {
    tensors.push_back({name + ".weight", {out, in}, role});
    if (bias) tensors.push_back({name + ".bias", {out}, Role::kBias});
  };
  const auto norm = [&](const std::string& name, std::int64_t size) {
    tensors.push_back({name + ".weight", {size}, Role::kNorm});
  };

  tensors.push_back({"model.embed_tokens.weight", {config.vocab_size, config.hidden_size}, Role::kEmbedding});
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const auto part = [layer](const char* name) { return LayerTensor(layer, name); };
    norm(part("input_layernorm"), config.hidden_size);
    projection(part("self_attn.q_proj"), config.QuerySize(), config.hidden_size, config.qkv_bias,
               Role::kQueryKeyProjection);
    projection(part("self_attn.k_proj"), config.KeyValueSize(), config.hidden_size, config.qkv_bias,
               Role::kQueryKeyProjection);
    projection(part("self_attn.v_proj"), config.KeyValueSize(), config.hidden_size, config.qkv_bias);
    if (config.qk_norm) {
      norm(part("self_attn.q_norm"), config.head_dim);
      norm(part("self_attn.k_norm"), config.head_dim);
    }
    projection(part("self_attn.o_proj"), config.hidden_size, config.QuerySize(), config.output_bias);
    norm(part("post_attention_layernorm"), config.hidden_size);
    projection(part("mlp.gate_proj"), config.intermediate_size, config.hidden_size, config.mlp_bias);
    projection(part("mlp.up_proj"), config.intermediate_size, config.hidden_size, config.mlp_bias);
    projection(part("mlp.down_proj"), config.hidden_size, config.intermediate_size, config.mlp_bias);
  }
  norm("model.norm", config.hidden_size);
  if (!config.tie_word_embeddings) projection("lm_head", config.vocab_size, config.hidden_size, false);
  return tensors;
}

bool MayBeLeftUnread(const ModelConfig& config, const std::string& name) {
  if (config.tie_word_embeddings && name == "lm_head.weight") return true;
  return name.starts_with("model.layers.") && name.ends_with(".self_attn.rotary_emb.inv_freq");
}

std::int64_t CountParameters(const ModelConfig& config) {
  std::int64_t parameters = 0;
  for (const TensorSpec& tensor : ListTensors(config)) parameters += tensor.Elements();
  return parameters;
}

}  // namespace plumbline
