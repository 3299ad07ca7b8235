#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/torch/checkpoint/model_config.h"

namespace plumbline {

// A tensor that a model must have, under its name in Hugging Face checkpoints.
struct TensorSpec {
  enum class Role { kEmbedding, kProjection, kQueryKeyProjection, kNorm, kBias };

  std::string name;
  std::vector<std::int64_t> shape;  // [out, in] of a projection, [size] of a norm or a bias
  Role role = Role::kProjection;

  std::int64_t Elements() const;
};

// "model.layers.<layer>.<part>".
std::string LayerTensor(std::int64_t layer, const std::string& part);

// All of them, in the order in which a step uses them.
std::vector<TensorSpec> ListTensors(const ModelConfig& config);

// Tensors that some checkpoints carry and that are rightly not used: the rotary frequencies of old Llama
// files (computed from the config instead), and an lm_head beside tied embeddings (transformers drops it
// too).
bool MayBeLeftUnread(const ModelConfig& config, const std::string& name);

std::int64_t CountParameters(const ModelConfig& config);

}  // namespace plumbline
