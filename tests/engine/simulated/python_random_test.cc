#include "engine/simulated/python_random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plumbline {
namespace {

using testing::ElementsAre;

// The expected values are what CPython 3 prints for random.Random(42).
TEST(PythonRandom, DrawsWhatRandrangeDraws) {
  PythonRandom random(42);
  std::vector<std::uint32_t> drawn;
  for (int i = 0; i < 12; ++i) drawn.push_back(random.Below(5));
  EXPECT_THAT(drawn, ElementsAre(0, 0, 2, 1, 1, 1, 0, 4, 0, 4, 3, 0));
}

TEST(PythonRandom, SamplesOfALargePopulationAreDrawnAgainOnRepetition) {
  PythonRandom random(42);
  EXPECT_THAT(random.Sample(128, 8), ElementsAre(28, 6, 70, 62, 57, 35, 26, 22));
  EXPECT_THAT(random.Sample(128, 8), ElementsAre(108, 8, 7, 23, 55, 59, 6, 50));
}

TEST(PythonRandom, SamplesOfASmallPopulationComeFromAList) {
  PythonRandom random(42);
  EXPECT_THAT(random.Sample(8, 2), ElementsAre(1, 0));
  EXPECT_THAT(random.Sample(8, 2), ElementsAre(4, 1));
  EXPECT_THAT(random.Sample(60, 8), ElementsAre(14, 8, 47, 6, 43, 57, 34, 5));
}

TEST(PythonRandom, AWholePopulationIsEveryNumberOnce) {
  PythonRandom random(7);
  std::vector<std::uint32_t> all = random.Sample(4, 4);
  EXPECT_THAT(all, testing::UnorderedElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace plumbline
