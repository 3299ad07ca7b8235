#pragma once

#include "engine/base/json.h"
#include "engine/torch/checkpoint/model_config.h"

namespace plumbline {

// The rotary embedding of a config.json: `rope_parameters` (transformers 5), or `rope_theta` and
// `rope_scaling` (transformers 4). Where both stand they must agree. Throws Error(kBadInput).
RopeConfig ReadRopeConfig(const JsonView& config);

// Angle per position of each pair of dimensions, head_dim / 2 of them. Llama 3's scaling leaves wavelengths
// below original / high_freq_factor alone, divides those above original / low_freq_factor by `factor`, and
// blends in between (Llama 3.1 model card; rope_type "llama3" in transformers).
std::vector<double> InverseFrequencies(const RopeConfig& rope, std::int64_t head_dim);

}  // namespace plumbline
