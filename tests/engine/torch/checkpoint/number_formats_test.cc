#include "engine/torch/checkpoint/number_formats.h"

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

namespace plumbline {
namespace {

TEST(NumberFormats, Bfloat16IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(FloatFromBfloat16(0x3f80), 1.0f);
  EXPECT_EQ(FloatFromBfloat16(0xc000), -2.0f);
  EXPECT_EQ(FloatFromBfloat16(0x0001), 0x1p-133f);
  EXPECT_EQ(FloatFromBfloat16(0x7f80), std::numeric_limits<float>::infinity());
}

TEST(NumberFormats, Float16CoversSubnormalsAndInfinity) {
  EXPECT_EQ(FloatFromFloat16(0x3c00), 1.0f);
  EXPECT_EQ(FloatFromFloat16(0xc000), -2.0f);
  EXPECT_EQ(FloatFromFloat16(0x7bff), 65504.0f);
  EXPECT_EQ(FloatFromFloat16(0x0001), 0x1p-24f);
  EXPECT_EQ(FloatFromFloat16(0x83ff), -1023 * 0x1p-24f);
  EXPECT_EQ(FloatFromFloat16(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(FloatFromFloat16(0x7e00)));
  EXPECT_TRUE(std::signbit(FloatFromFloat16(0x8000)));
}

}  // namespace
}  // namespace plumbline
