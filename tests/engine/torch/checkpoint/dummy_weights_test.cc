#include <gtest/gtest.h>
#include <cmath>
#include <vector>

#include "engine/base/sha256.h"
#include "engine/torch/checkpoint/weight_source.h"

namespace plumbline {
namespace {

std::vector<float> Values(std::uint64_t seed, const TensorSpec& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.Elements()));
  DummyWeights(seed)->Read(tensor, values);
  return values;
}

double Deviation(const std::vector<float>& values, double middle) {
  double sum = 0;
  for (const float value : values) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

const TensorSpec kProjection = {"w", {64, 100}, TensorSpec::Role::kProjection};

// Pinned: suites pin hashes of tokens that follow from these values, on every machine.
TEST(DummyWeights, AreTheSameOnEveryMachine) {
  const std::vector<float> values = Values(42, kProjection);
  EXPECT_EQ(Sha256Hex({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}),
            "834bd3a8490cf290f6573f90c7d769533b9f8b0aa60ff120c059194aa971bf44");
}

TEST(DummyWeights, DependOnSeedAndName) {
  EXPECT_EQ(Values(1, kProjection), Values(1, kProjection));
  EXPECT_NE(Values(1, kProjection), Values(2, kProjection));
  EXPECT_NE(Values(1, kProjection), Values(1, {"v", {64, 100}, TensorSpec::Role::kProjection}));
}

TEST(DummyWeights, KeepActivationsNearOne) {
  EXPECT_NEAR(Deviation(Values(1, kProjection), 0), 0.1, 0.003);
  EXPECT_NEAR(Deviation(Values(1, {"e", {64, 100}, TensorSpec::Role::kEmbedding}), 0), 1, 0.03);
  EXPECT_NEAR(Deviation(Values(1, {"q", {64, 100}, TensorSpec::Role::kQueryKeyProjection}), 0), 0.15, 0.005);
  EXPECT_NEAR(Deviation(Values(1, {"n", {6400}, TensorSpec::Role::kNorm}), 1), 0.1, 0.003);
}

}  // namespace
}  // namespace plumbline
