#include "engine/simulated/expert_routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plumbline {
namespace {

using testing::ElementsAre;

ExpertGate Gate(ExpertRouting routing, std::int64_t experts, std::int64_t per_token, std::int64_t ep) {
  return {.routing = routing, .num_experts = experts, .experts_per_token = per_token, .ep = ep};
}

TEST(ExpertRouting, BalancedMeetsExpertsUntilAllAreMet) {
  const ExpertGate gate = Gate(ExpertRouting::kBalanced, 8, 2, 2);
  // Each rank misses a token with probability 1/4; pairs are dealt evenly, up to 4 experts a rank.
  EXPECT_THAT(RouteToExperts(gate, 3), ElementsAre(ExpertLoad{2, 3}, ExpertLoad{2, 3}));
  EXPECT_THAT(RouteToExperts(gate, 100), ElementsAre(ExpertLoad{75, 4}, ExpertLoad{75, 4}));
}

TEST(ExpertRouting, RoundRobinStaysWithTheFirstExperts) {
  const ExpertGate gate = Gate(ExpertRouting::kRoundRobin, 8, 2, 2);
  EXPECT_THAT(RouteToExperts(gate, 5), ElementsAre(ExpertLoad{5, 2}, ExpertLoad{0, 0}));
}

// The expected values come from Python's random.Random(42).sample(range(E), k), token by token.
TEST(ExpertRouting, RandomDrawsPythonsLots) {
  EXPECT_THAT(RouteToExperts(Gate(ExpertRouting::kRandom, 8, 2, 2), 3),
              ElementsAre(ExpertLoad{3, 3}, ExpertLoad{1, 1}));
  EXPECT_THAT(RouteToExperts(Gate(ExpertRouting::kRandom, 128, 8, 4), 16),
              ElementsAre(ExpertLoad{15, 23}, ExpertLoad{14, 19}, ExpertLoad{14, 22}, ExpertLoad{13, 17}));
}

TEST(ExpertRouting, EveryBatchDrawsTheSameLots) {
  const ExpertGate gate = Gate(ExpertRouting::kRandom, 16, 2, 4);
  EXPECT_EQ(RouteToExperts(gate, 9), RouteToExperts(gate, 9));
}

TEST(ExpertRouting, CustomReadsTheMeasuredCurve) {
  const GateCurve curve = {.source = "g", .tokens = {1, 10}, .experts = {2, 6.5}};
  ExpertGate gate = Gate(ExpertRouting::kCustom, 8, 2, 1);
  gate.curve = &curve;
  EXPECT_EQ(RouteToExperts(gate, 1)[0].experts, 2);
  EXPECT_EQ(RouteToExperts(gate, 5)[0].experts, 4);
  EXPECT_EQ(RouteToExperts(gate, 10)[0].experts, 6) << "half to even";
  EXPECT_EQ(RouteToExperts(gate, 1000)[0].experts, 6) << "never beyond the last point";
  gate.ep = 4;
  EXPECT_EQ(RouteToExperts(gate, 10)[0].experts, 2) << "a rank's share, at most its experts";
}

}  // namespace
}  // namespace plumbline
