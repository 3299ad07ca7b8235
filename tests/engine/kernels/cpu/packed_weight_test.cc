#include "engine/kernels/cpu/packed_weight.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/engine/kernels/cpu/kernel_test.h"

namespace plumbline::cpu {
namespace {

float PackedFloat(const PackedWeight& weight, std::int64_t panel, std::int64_t column, std::int64_t input) {
  return reinterpret_cast<const float*>(weight.panel(panel))[input * 16 + column];
}

float PackedBFloat16(const PackedWeight& weight, std::int64_t panel, std::int64_t column,
                     std::int64_t input) {
  return Widen(
      reinterpret_cast<const BFloat16*>(weight.panel(panel))[input / 2 * 32 + column * 2 + input % 2]);
}

TEST(PackedWeight, PartsOfBothTypesAreStackedAndPadded) {
  Random random(1);
  const std::int64_t inputs = 7;
  const std::vector<float> wide = random.Values(5 * 10);  // a stride of its own
  const std::vector<BFloat16> narrow = NarrowAll(random.Values(14 * inputs));
  const WeightRows parts[] = {{wide.data(), Dtype::kFloat32, 5, 10},
                              {narrow.data(), Dtype::kBFloat16, 14, inputs}};
  const PackedWeight packed = PackedWeight::Pack(Dtype::kFloat32, parts, inputs);
  EXPECT_EQ(packed.outputs(), 19);
  EXPECT_EQ(packed.panels(), 2);
  EXPECT_EQ(packed.panel_bytes(), 7 * 16 * 4);
  for (std::int64_t k = 0; k < inputs; ++k) {
    for (std::int64_t n = 0; n < 32; ++n) {
      const float expected = n < 5 ? wide[n * 10 + k] : (n < 19 ? Widen(narrow[(n - 5) * inputs + k]) : 0.0f);
      EXPECT_EQ(PackedFloat(packed, n / 16, n % 16, k), expected) << n << " " << k;
    }
  }
}

TEST(PackedWeight, BFloat16IsRoundedAndPairedOddInputsPadded) {
  Random random(2);
  const std::int64_t inputs = 5;
  const std::vector<float> wide = random.Values(3 * inputs);
  const WeightRows part{wide.data(), Dtype::kFloat32, 3, inputs};
  const PackedWeight packed = PackedWeight::Pack(Dtype::kBFloat16, {&part, 1}, inputs);
  EXPECT_EQ(packed.panel_bytes(), 6 * 16 * 2);
  for (std::int64_t n = 0; n < 16; ++n) {
    for (std::int64_t k = 0; k < 6; ++k) {
      const float expected = n < 3 && k < inputs ? Widen(Narrow(wide[n * inputs + k])) : 0.0f;
      EXPECT_EQ(PackedBFloat16(packed, 0, n, k), expected) << n << " " << k;
    }
  }
}

TEST(PackedWeight, GateAndUpStandSideBySide) {
  Random random(3);
  const std::int64_t inputs = 4;
  const std::int64_t height = 11;
  const std::vector<float> gate = random.Values(height * inputs);
  const std::vector<float> up = random.Values(height * inputs);
  const WeightRows parts[] = {{gate.data(), Dtype::kFloat32, height, inputs},
                              {up.data(), Dtype::kFloat32, height, inputs}};
  const PackedWeight packed = PackedWeight::Pack(Dtype::kFloat32, parts, inputs, PackOrder::kGateUp);
  EXPECT_EQ(packed.panels(), 2);
  for (std::int64_t n = 0; n < 16; ++n) {
    for (std::int64_t k = 0; k < inputs; ++k) {
      const std::int64_t panel = n / 8;
      EXPECT_EQ(PackedFloat(packed, panel, n % 8, k), n < height ? gate[n * inputs + k] : 0.0f);
      EXPECT_EQ(PackedFloat(packed, panel, 8 + n % 8, k), n < height ? up[n * inputs + k] : 0.0f);
    }
  }
}

TEST(PackedWeight, LargeWeightsAreMovedNotCopied) {
  const std::vector<float> wide(1024 * 1024, 0.5f);
  const WeightRows part{wide.data(), Dtype::kFloat32, 1024, 1024};
  PackedWeight packed = PackedWeight::Pack(Dtype::kFloat32, {&part, 1}, 1024);
  const std::byte* data = packed.panel(0);
  const PackedWeight moved = std::move(packed);
  EXPECT_EQ(moved.panel(0), data);
  EXPECT_EQ(moved.bytes(), 4 << 20);
  EXPECT_EQ(PackedFloat(moved, 63, 15, 1023), 0.5f);
}

TEST(PackedWeight, NoOutputsGiveNoPanels) {
  EXPECT_EQ(PackedWeight::Pack(Dtype::kFloat32, {}, 8).panels(), 0);
}

TEST(PackedWeight, WrongShapesThrow) {
  const float value = 0;
  const WeightRows one{&value, Dtype::kFloat32, 1, 1};
  const WeightRows two[] = {one, {&value, Dtype::kFloat32, 0, 1}};
  EXPECT_THROW(PackedWeight::Pack(Dtype::kFloat32, {&one, 1}, 0), std::invalid_argument);
  EXPECT_THROW(PackedWeight::Pack(Dtype::kFloat32, {&one, 1}, PackedWeight::kMaxInputs + 1),
               std::invalid_argument);
  EXPECT_THROW(PackedWeight::Pack(Dtype::kFloat32, {&one, 1}, 1, PackOrder::kGateUp), std::invalid_argument);
  EXPECT_THROW(PackedWeight::Pack(Dtype::kFloat32, two, 1, PackOrder::kGateUp), std::invalid_argument);
}

}  // namespace
}  // namespace plumbline::cpu
