#include "engine/kernels/cpu/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plumbline::cpu {
namespace {

TEST(BFloat16, EveryValueSurvivesWideningAndNarrowing) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<BFloat16>(bits);
    const float wide = Widen(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(Widen(Narrow(wide)))) << bits;
    } else {
      EXPECT_EQ(Narrow(wide), value) << bits;
    }
  }
}

TEST(BFloat16, NarrowRoundsToNearestTiesToEven) {
  EXPECT_EQ(Narrow(1.0f + 1.0f / 256), 0x3f80);    // half way between 1 and 1 + 1/128: to the even one
  EXPECT_EQ(Narrow(1.0f + 3.0f / 256), 0x3f82);    // half way: up to the even one
  EXPECT_EQ(Narrow(1.0f + 1.01f / 256), 0x3f81);   // above half
  EXPECT_EQ(Narrow(-1.0f - 0.99f / 256), 0xbf80);  // below half
  EXPECT_EQ(Narrow(std::numeric_limits<float>::max()), 0x7f80);  // overflows to infinity
}

}  // namespace
}  // namespace plumbline::cpu
