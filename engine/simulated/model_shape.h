#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumbline {

// A language model as the simulator sees it: sizes only.
struct ModelShape {
  std::string name;
  std::string model_type;
  std::string torch_dtype;  // as the config says; empty when it does not
  std::int64_t hidden_size = 0;
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t moe_intermediate_size = 0;
  std::int64_t num_experts = 0;  // 0 = dense
  std::int64_t experts_per_token = 0;
  std::int64_t leading_dense_layers = 0;  // of a model with experts: they have none
  std::int64_t max_position_embeddings = 0;

  bool moe() const { return num_experts > 0; }
  std::int64_t q_size() const { return num_heads * head_dim; }
  std::int64_t kv_size() const { return num_kv_heads * head_dim; }
};

enum class LayerKind { kDense, kPerSequence, kAttention, kMoe };

struct LayerType {
  std::string name;
  LayerKind kind = LayerKind::kDense;
  bool tp_stable = false;  // its time does not depend on the tensor-parallel degree
};

// In which order a model's layers run (profiler/models/<model_type>.yaml).
struct Architecture {
  std::vector<LayerType> prologue;
  std::vector<LayerType> pre_attention;
  std::vector<LayerType> post_attention;
  std::vector<LayerType> mlp_dense;
  std::vector<LayerType> mlp_moe;
  std::vector<LayerType> head;
  bool from_blocks = false;  // the newer layout, whose layers may differ from each other
};

// How a model is spread over the devices of an instance.
struct Sharding {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t ep = 1;  // of the whole data-parallel group
  std::int64_t bytes_per_weight = 2;
};

// Bytes of one device's share of the weights, as the reference counts them (qk_norm is left out).
std::int64_t WeightBytes(const ModelShape& model, const Sharding& sharding);

// Bytes of one layer's weights on one device, for layers that do not lie in device memory; 0 for a layer that
// has none.
std::int64_t LayerWeightBytes(const ModelShape& model, const Sharding& sharding, const std::string& layer);

}  // namespace plumbline
