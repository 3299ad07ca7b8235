#include "engine/torch/model_weights.h"

#include <algorithm>
#include <initializer_list>
#include <unordered_map>

namespace plumbline {
namespace {

// Reads tensors by name and packs them.
class Loader {
 public:
  Loader(const ModelConfig& config, WeightSource& source, cpu::Dtype dtype) : source_(source), dtype_(dtype) {
    for (TensorSpec& tensor : ListTensors(config)) tensors_.emplace(tensor.name, tensor);
  }

  std::vector<float> Read(const std::string& name) {
    const TensorSpec& tensor = tensors_.at(name);
    std::vector<float> values(static_cast<std::size_t>(tensor.Elements()));
    source_.Read(tensor, values);
    return values;
  }

  // The tensors one behind the other; nothing where the model does not have them.
  std::vector<float> ReadIfThere(std::initializer_list<std::string> names) {
    std::vector<float> values;
    for (const std::string& name : names) {
      if (!tensors_.contains(name)) continue;
      const std::vector<float> part = Read(name);
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }

  cpu::PackedWeight Pack(std::initializer_list<std::string> names,
                         cpu::PackOrder order = cpu::PackOrder::kPlain) {
    std::vector<std::vector<float>> values;
    std::vector<cpu::WeightRows> parts;
    std::int64_t inputs = 0;
    for (const std::string& name : names) {
      const TensorSpec& tensor = tensors_.at(name);
      inputs = tensor.shape[1];
      values.push_back(Read(name));
      parts.push_back({.data = values.back().data(), .rows = tensor.shape[0], .row_stride = inputs});
    }
    return cpu::PackedWeight::Pack(dtype_, parts, inputs, order);
  }

 private:
  WeightSource& source_;
  cpu::Dtype dtype_;
  std::unordered_map<std::string, TensorSpec> tensors_;
};

Buffer StoreEmbedding(const std::vector<float>& values, cpu::Dtype dtype) {
  Buffer table(static_cast<std::int64_t>(values.size()) * cpu::SizeOf(dtype));
  if (dtype == cpu::Dtype::kFloat32) {
    std::copy(values.begin(), values.end(), table.As<float>());
  } else {
    std::transform(values.begin(), values.end(), table.As<cpu::BFloat16>(), cpu::Narrow);
  }
  return table;
}

LayerWeights LoadLayer(Loader& loader, std::int64_t index) {
  const auto part = [index](const char* name) { return LayerTensor(index, name); };
  return {
      .input_norm = loader.Read(part("input_layernorm.weight")),
      .qkv = loader.Pack({part("self_attn.q_proj.weight"), part("self_attn.k_proj.weight"),
                          part("self_attn.v_proj.weight")}),
      .qkv_bias = loader.ReadIfThere(
          {part("self_attn.q_proj.bias"), part("self_attn.k_proj.bias"), part("self_attn.v_proj.bias")}),
      .q_norm = loader.ReadIfThere({part("self_attn.q_norm.weight")}),
      .k_norm = loader.ReadIfThere({part("self_attn.k_norm.weight")}),
      .output = loader.Pack({part("self_attn.o_proj.weight")}),
      .output_bias = loader.ReadIfThere({part("self_attn.o_proj.bias")}),
      .post_attention_norm = loader.Read(part("post_attention_layernorm.weight")),
      .gate_up =
          loader.Pack({part("mlp.gate_proj.weight"), part("mlp.up_proj.weight")}, cpu::PackOrder::kGateUp),
      .gate_up_bias = loader.ReadIfThere({part("mlp.gate_proj.bias"), part("mlp.up_proj.bias")}),
      .down = loader.Pack({part("mlp.down_proj.weight")}),
      .down_bias = loader.ReadIfThere({part("mlp.down_proj.bias")}),
  };
}

}  // namespace

ModelWeights LoadWeights(const ModelConfig& config, WeightSource& source, cpu::Dtype dtype) {
  Loader loader(config, source, dtype);
  ModelWeights weights;
  weights.dtype = dtype;
  const std::string embedding = "model.embed_tokens.weight";
  weights.embedding = StoreEmbedding(loader.Read(embedding), dtype);
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    weights.layers.push_back(LoadLayer(loader, layer));
  }
  weights.final_norm = loader.Read("model.norm.weight");
  weights.lm_head = loader.Pack({config.tie_word_embeddings ? embedding : "lm_head.weight"});
  return weights;
}

}  // namespace plumbline
