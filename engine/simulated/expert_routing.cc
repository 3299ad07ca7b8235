#include "engine/simulated/expert_routing.h"

#include <algorithm>
#include <cmath>

#include "engine/simulated/python_random.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kSeed = 42;

std::int64_t RoundHalfEven(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

std::int64_t ExpertsMet(const ExpertGate& gate, double tokens) {
  const double ep = static_cast<double>(gate.ep);
  const std::int64_t most = gate.num_experts / gate.ep;
  if (gate.routing == ExpertRouting::kCustom) {
    return std::min(most, std::max<std::int64_t>(1, RoundHalfEven(gate.curve->At(tokens) / ep)));
  }
  return std::min(most, RoundHalfEven(tokens * static_cast<double>(gate.experts_per_token) / ep));
}

// All ranks alike: tokens that meet a rank, and experts met there, of a gate that prefers none.
std::vector<ExpertLoad> RouteEvenly(const ExpertGate& gate, std::int64_t tokens) {
  const double n = static_cast<double>(tokens);
  const double ep = static_cast<double>(gate.ep);
  const double missed = std::pow((ep - 1.0) / ep, static_cast<double>(gate.experts_per_token));
  const ExpertLoad load = {.tokens = gate.ep == 1 ? tokens : RoundHalfEven(n * (1.0 - missed)),
                           .experts = ExpertsMet(gate, n)};
  return std::vector<ExpertLoad>(static_cast<std::size_t>(gate.ep), load);
}

}  // namespace

double GateCurve::At(double count) const {
  if (count <= tokens.front()) return experts.front();
  if (count >= tokens.back()) return experts.back();
  const auto above = std::lower_bound(tokens.begin(), tokens.end(), count);
  const std::size_t i = static_cast<std::size_t>(above - tokens.begin());
  if (tokens[i] == count) return experts[i];
  return experts[i - 1] +
         (experts[i] - experts[i - 1]) * (count - tokens[i - 1]) / (tokens[i] - tokens[i - 1]);
}

std::vector<ExpertLoad> RouteToExperts(const ExpertGate& gate, std::int64_t tokens) {
  if (gate.routing == ExpertRouting::kBalanced || gate.routing == ExpertRouting::kCustom) {
    return RouteEvenly(gate, tokens);
  }
  const auto count = static_cast<std::uint32_t>(gate.num_experts);
  const auto size = static_cast<std::uint32_t>(gate.experts_per_token);
  std::vector<ExpertLoad> loads(static_cast<std::size_t>(gate.ep));
  std::vector<bool> met(count);
  std::vector<std::int64_t> last_token(loads.size(), -1);
  std::vector<std::uint32_t> chosen(size);
  for (std::uint32_t i = 0; i < size; ++i) chosen[i] = i;
  PythonRandom random(kSeed);
  for (std::int64_t token = 0; token < tokens; ++token) {
    if (gate.routing == ExpertRouting::kRandom) chosen = random.Sample(count, size);
    for (const std::uint32_t expert : chosen) {
      const auto rank = static_cast<std::size_t>(expert * gate.ep / gate.num_experts);
      if (!met[expert]) ++loads[rank].experts;
      met[expert] = true;
      if (last_token[rank] != token) ++loads[rank].tokens;
      last_token[rank] = token;
    }
  }
  return loads;
}

}  // namespace plumbline
