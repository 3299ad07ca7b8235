#pragma once

#include <cstdint>
#include <vector>

#include "engine/torch/checkpoint/model_config.h"

namespace plumbline {

// [positions, head_dim]: of each position head_dim / 2 cosines, then as many sines. Frequencies and angles
// are rounded to float32 before the cosine is taken, as transformers does: without that, far positions differ
// from it.
std::vector<float> MakeRopeTable(const RopeConfig& rope, std::int64_t head_dim, std::int64_t positions);

}  // namespace plumbline
