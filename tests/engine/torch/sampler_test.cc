#include "engine/torch/sampler.h"

#include <gtest/gtest.h>
#include <cmath>
#include <map>

namespace plumbline {
namespace {

const std::vector<float> kLogits = {0.0f, std::log(2.0f), std::log(5.0f), std::log(2.0f)};  // 1 2 5 2 of 10

std::map<TokenId, double> Shares(const SamplingParams& params) {
  constexpr int kDraws = 4000;
  std::map<TokenId, double> shares;
  for (int i = 0; i < kDraws; ++i) shares[SampleToken(kLogits, params, i)] += 1.0 / kDraws;
  return shares;
}

TEST(SampleToken, DrawsInProportion) {
  std::map<TokenId, double> shares = Shares({.temperature = 1, .seed = 1});
  EXPECT_NEAR(shares[0], 0.1, 0.02);
  EXPECT_NEAR(shares[1], 0.2, 0.03);
  EXPECT_NEAR(shares[2], 0.5, 0.03);
}

TEST(SampleToken, TemperatureSharpens) {
  std::map<TokenId, double> shares = Shares({.temperature = 0.5, .seed = 1});  // 1 4 25 4 of 34
  EXPECT_NEAR(shares[2], 25.0 / 34, 0.03);
}

TEST(SampleToken, TopKKeepsTheMostLikelyAndTheLowestOfEquals) {
  std::map<TokenId, double> shares = Shares({.temperature = 1, .top_k = 2, .seed = 3});
  EXPECT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares[1], 2.0 / 7, 0.03);
  EXPECT_EQ(Shares({.temperature = 9, .top_k = 1}).count(2), 1u);
  EXPECT_EQ(Shares({.temperature = 1, .top_k = 99, .seed = 1}),
            Shares({.temperature = 1, .top_k = 4, .seed = 1}));
}

TEST(SampleToken, TopPKeepsTheFewestThatReachIt) {
  std::map<TokenId, double> shares = Shares({.temperature = 1, .top_p = 0.6, .seed = 4});
  EXPECT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares[2], 5.0 / 7, 0.03);
  EXPECT_EQ(Shares({.temperature = 1, .top_p = 1e-9}).size(), 1u);
}

TEST(SampleToken, DependsOnSeedAndOutputIndexOnly) {
  std::vector<TokenId> first;
  std::vector<TokenId> again;
  std::vector<TokenId> other;
  for (int i = 0; i < 50; ++i) {
    first.push_back(SampleToken(kLogits, {.temperature = 1, .seed = 7}, i));
    other.push_back(SampleToken(kLogits, {.temperature = 1, .seed = 8}, i));
  }
  for (int i = 49; i >= 0; --i) {
    again.insert(again.begin(), SampleToken(kLogits, {.temperature = 1, .seed = 7}, i));
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

}  // namespace
}  // namespace plumbline
