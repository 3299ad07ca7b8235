#include "engine/torch/rope_table.h"

#include <gtest/gtest.h>
#include <cmath>

namespace plumbline {
namespace {

TEST(RopeTable, HoldsCosinesThenSinesOfEachPosition) {
  const std::vector<float> table = MakeRopeTable({.theta = 10000}, 4, 3);
  ASSERT_EQ(table.size(), 12u);
  EXPECT_EQ(table[0], 1);
  EXPECT_EQ(table[2], 0);
  EXPECT_FLOAT_EQ(table[8], static_cast<float>(std::cos(2.0)));
  EXPECT_FLOAT_EQ(table[9], static_cast<float>(std::cos(0.02)));
  EXPECT_FLOAT_EQ(table[10], static_cast<float>(std::sin(2.0)));
  EXPECT_FLOAT_EQ(table[11], static_cast<float>(std::sin(0.02)));
}

}  // namespace
}  // namespace plumbline
