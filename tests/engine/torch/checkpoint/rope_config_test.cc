#include "engine/torch/checkpoint/rope_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>

#include "engine/base/error.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

const Json kLlama3 = {{"rope_type", "llama3"},
                      {"factor", 8.0},
                      {"low_freq_factor", 1.0},
                      {"high_freq_factor", 4.0},
                      {"original_max_position_embeddings", 64}};

RopeConfig Read(const Json& config) {
  return ReadRopeConfig(JsonView(config, "config.json"));
}

std::string Refusal(const Json& config) {
  try {
    Read(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RopeConfig, BothGenerationsSayTheSame) {
  const RopeConfig older = Read({{"rope_theta", 500000.0}, {"rope_scaling", kLlama3}});
  Json parameters = kLlama3;
  parameters["rope_theta"] = 500000.0;
  const RopeConfig newer = Read({{"rope_parameters", parameters}});
  for (const RopeConfig& rope : {older, newer}) {
    EXPECT_EQ(rope.theta, 500000);
    EXPECT_TRUE(rope.llama3);
    EXPECT_EQ(rope.factor, 8);
    EXPECT_EQ(rope.original_max_position_embeddings, 64);
  }
}

TEST(RopeConfig, NullScalingIsTheDefault) {
  EXPECT_FALSE(Read({{"rope_theta", 1e6}, {"rope_scaling", nullptr}}).llama3);
  EXPECT_FALSE(Read({{"rope_scaling", {{"type", "default"}}}}).llama3);
}

TEST(RopeConfig, OtherTypesAreRefusedByName) {
  EXPECT_THAT(Refusal({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}), HasSubstr("linear"));
  EXPECT_THAT(Refusal({{"rope_parameters", {{"rope_type", "yarn"}, {"factor", 4.0}}}}),
              HasSubstr("accepted: default, llama3"));
}

TEST(RopeConfig, MemberThatNobodyReadsIsRefused) {
  Json scaling = kLlama3;
  scaling["mscale"] = 1.0;
  EXPECT_THAT(Refusal({{"rope_scaling", scaling}}), HasSubstr("mscale"));
}

TEST(RopeConfig, ContradictionsAreRefused) {
  EXPECT_THAT(Refusal({{"rope_theta", 1e4}, {"rope_parameters", {{"rope_theta", 1e6}}}}),
              HasSubstr("contradicts rope_parameters.rope_theta"));
  EXPECT_THAT(Refusal({{"rope_scaling", kLlama3}, {"rope_parameters", {{"rope_theta", 1e6}}}}),
              HasSubstr("contradicts rope_parameters"));
}

TEST(RopeConfig, ValuesOutOfRangeAreRefused) {
  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    Json scaling = kLlama3;
    scaling[key] = 0;
    EXPECT_THAT(Refusal({{"rope_scaling", scaling}}), HasSubstr(key));
    scaling.erase(key);
    EXPECT_THAT(Refusal({{"rope_scaling", scaling}}), HasSubstr(key));
  }
  EXPECT_THAT(Refusal({{"rope_theta", 0}}), HasSubstr("rope_theta"));
}

TEST(InverseFrequencies, FollowThePowersOfTheta) {
  const std::vector<double> frequencies = InverseFrequencies({.theta = 10000}, 8);
  ASSERT_EQ(frequencies.size(), 4u);
  EXPECT_DOUBLE_EQ(frequencies[0], 1);
  EXPECT_DOUBLE_EQ(frequencies[1], 0.1);
  EXPECT_DOUBLE_EQ(frequencies[3], 0.001);
}

// Worked by hand for original length 64, factors 1 and 4: wavelengths below 16 stay, above 64 are divided by
// 8, and 2 pi / 0.2 = 31.4 is blended with smooth = (64 / 31.4 - 1) / 3 = 0.34573.
TEST(InverseFrequencies, Llama3ScalesTheLowOnes) {
  const double theta = std::pow(0.2, -2.0);  // frequencies 1 and 0.2 for a head of 4
  RopeConfig rope = {.theta = theta,
                     .llama3 = true,
                     .factor = 8,
                     .low_freq_factor = 1,
                     .high_freq_factor = 4,
                     .original_max_position_embeddings = 64};
  const std::vector<double> blended = InverseFrequencies(rope, 4);
  EXPECT_DOUBLE_EQ(blended[0], 1);
  EXPECT_NEAR(blended[1], (1 - 0.345727) * 0.2 / 8 + 0.345727 * 0.2, 1e-6);
  rope.theta = 1e6;
  EXPECT_DOUBLE_EQ(InverseFrequencies(rope, 4)[1], 1e-3 / 8);
}

}  // namespace
}  // namespace plumbline
