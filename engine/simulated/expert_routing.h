#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumbline {

// How the tokens of a batch find their experts.
enum class ExpertRouting : std::uint8_t {
  kBalanced,    // closed form of a gate that spreads evenly
  kRoundRobin,  // the reference's: every token is its policy's token 0, and takes the first experts
  kRandom,      // each token draws lots; seeded anew for every batch
  kCustom,      // kBalanced, with the number of experts met as measured (GateCurve)
};

// How many different experts of a layer a real gate meets, by tokens: a run's gate_stats.json.
struct GateCurve {
  std::string source;           // the file, for messages
  std::vector<double> tokens;   // ascending
  std::vector<double> experts;  // mean, for each

  // Linear between the neighbours, the end's own value beyond an end.
  double At(double count) const;
};

// What one expert-parallel rank gets of a batch.
struct ExpertLoad {
  std::int64_t tokens = 0;   // that meet at least one of its experts
  std::int64_t experts = 0;  // that at least one token meets

  bool operator==(const ExpertLoad&) const = default;
};

struct ExpertGate {
  ExpertRouting routing = ExpertRouting::kBalanced;
  std::int64_t num_experts = 1;
  std::int64_t experts_per_token = 1;
  std::int64_t ep = 1;               // ranks; divides num_experts
  const GateCurve* curve = nullptr;  // kCustom needs it
};

// One load a rank.
std::vector<ExpertLoad> RouteToExperts(const ExpertGate& gate, std::int64_t tokens);

}  // namespace plumbline
