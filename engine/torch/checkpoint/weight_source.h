#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/torch/checkpoint/model_config.h"
#include "engine/torch/checkpoint/tensor_list.h"

namespace plumbline {

// Gives the tensors of ListTensors as float32, in any order. One thread.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // `out` holds tensor.Elements() values.
  virtual void Read(const TensorSpec& tensor, std::span<float> out) = 0;
};

// `<folder>/model.safetensors`, or the shards of `<folder>/model.safetensors.index.json`. Opens and checks
// everything at once: each tensor of the model there exactly once, with its shape and a dtype that can be
// read, and none besides. Throws Error(kBadInput) naming the file and the tensors.
std::unique_ptr<WeightSource> OpenCheckpoint(const std::string& model_folder, const ModelConfig& config);

// Weights from a seed alone, the same on every machine: a 64-bit mix of seed, tensor name and index gives 24
// bits, scaled by one multiplication. Spread so that activations keep a size near one, attention is far from
// even, and the two highest logits lie well apart compared with float32 rounding.
std::unique_ptr<WeightSource> DummyWeights(std::uint64_t seed);

}  // namespace plumbline
