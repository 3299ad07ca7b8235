#include "engine/torch/rope_table.h"

#include <cmath>

#include "engine/torch/checkpoint/rope_config.h"

namespace plumbline {

std::vector<float> MakeRopeTable(const RopeConfig& rope, std::int64_t head_dim, std::int64_t positions) {
  const std::vector<double> frequencies = InverseFrequencies(rope, head_dim);
  std::vector<float> table;
  table.reserve(static_cast<std::size_t>(positions * head_dim));
  for (std::int64_t position = 0; position < positions; ++position) {
    const auto angle = [position](double frequency) {
      return static_cast<double>(static_cast<float>(frequency) * static_cast<float>(position));
    };
    for (const double frequency : frequencies)
      table.push_back(static_cast<float>(std::cos(angle(frequency))));
    for (const double frequency : frequencies)
      table.push_back(static_cast<float>(std::sin(angle(frequency))));
  }
  return table;
}

}  // namespace plumbline
