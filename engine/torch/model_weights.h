#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernels/cpu/packed_weight.h"
#include "engine/torch/buffer.h"
#include "engine/torch/checkpoint/weight_source.h"

namespace plumbline {

// One decoder layer. Biases and head norms are empty where the model has none.
struct LayerWeights {
  std::vector<float> input_norm;
  cpu::PackedWeight qkv;  // q, k and v stacked
  std::vector<float> qkv_bias;
  std::vector<float> q_norm;
  std::vector<float> k_norm;
  cpu::PackedWeight output;
  std::vector<float> output_bias;
  std::vector<float> post_attention_norm;
  cpu::PackedWeight gate_up;
  std::vector<float> gate_up_bias;  // gate, then up
  cpu::PackedWeight down;
  std::vector<float> down_bias;
};

// All weights, products packed once. Matrices are stored as `dtype`, norms and biases as float32.
struct ModelWeights {
  cpu::Dtype dtype = cpu::Dtype::kFloat32;
  Buffer embedding;  // [vocab, hidden] of dtype
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;
  cpu::PackedWeight lm_head;
};

ModelWeights LoadWeights(const ModelConfig& config, WeightSource& source, cpu::Dtype dtype);

}  // namespace plumbline
