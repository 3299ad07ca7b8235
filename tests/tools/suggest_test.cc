#include "tools/suggest.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

TEST(Suggest, FindsTheNearestKnownWord) {
  EXPECT_EQ(Suggest("--modle", {"--seed", "--model", "--dtype"}), "--model");
  EXPECT_EQ(Suggest("doctr", {"run", "doctor"}), "doctor");
  EXPECT_EQ(Suggest("rum", {"run", "doctor"}), "run");
}

TEST(Suggest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(Suggest("frobnicate", {"run", "doctor"}), "");
  EXPECT_EQ(Suggest("x", {}), "");
}

}  // namespace
}  // namespace plumbline
