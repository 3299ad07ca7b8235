#include "engine/simulated/cost_tables.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

TEST(LinearTable, BlendsBetweenAndBeyondItsPoints) {
  const LinearTable table({2, 4, 8}, {100, 200, 300});
  EXPECT_EQ(table.Lookup(1), 100) << "before the first point its time";
  EXPECT_EQ(table.Lookup(2), 100);
  EXPECT_EQ(table.Lookup(3), 150);
  EXPECT_EQ(table.Lookup(5), 225);
  EXPECT_EQ(table.Lookup(8), 300);
  EXPECT_EQ(table.Lookup(12), 400) << "along the last two points";
}

TEST(LinearTable, TruncatesAndNeverTakesNoTime) {
  EXPECT_EQ(LinearTable({1, 4}, {10, 20}).Lookup(2), 13);
  EXPECT_EQ(LinearTable({1, 2}, {10, 5}).Lookup(100), 1);
  EXPECT_EQ(LinearTable({7}, {42}).Lookup(-3), 42);
}

TEST(FindBracket, CollapsesAtTheStartAndExtendsAtTheEnd) {
  const std::vector<double> axis = {0, 10, 20};
  EXPECT_EQ(FindBracket(axis, -5).high, 0u);
  EXPECT_EQ(FindBracket(axis, 0).high, 0u);
  const Bracket inside = FindBracket(axis, 15);
  EXPECT_EQ(inside.low, 1u);
  EXPECT_EQ(inside.high, 2u);
  EXPECT_DOUBLE_EQ(inside.t, 0.5);
  EXPECT_DOUBLE_EQ(FindBracket(axis, 40).t, 3.0);
  EXPECT_EQ(FindBracket({5}, 99).high, 0u);
}

AttentionTable::Point Point(std::int64_t chunk, std::int64_t kv_prefill, std::int64_t decodes,
                            std::int64_t kv_decode, double time_ns) {
  return {.prefill_chunk = chunk,
          .kv_prefill = kv_prefill,
          .n_decode = decodes,
          .kv_decode = kv_decode,
          .time_ns = time_ns};
}

TEST(AttentionTable, BlendsInAllFourDirections) {
  std::vector<AttentionTable::Point> points;
  for (const std::int64_t chunk : {0, 10}) {
    for (const std::int64_t kv_prefill : {0, 100}) {
      for (const std::int64_t decodes : {0, 4}) {
        for (const std::int64_t kv_decode : {0, 1000}) {
          points.push_back(
              Point(chunk, kv_prefill, decodes, kv_decode,
                    static_cast<double>(1000 + chunk * 100 + kv_prefill * 10 + decodes * 7 + kv_decode)));
        }
      }
    }
  }
  const AttentionTable table(points);
  EXPECT_EQ(table.Lookup(10, 100, 4, 1000), 1000 + 1000 + 1000 + 28 + 1000);
  EXPECT_EQ(table.Lookup(5, 50, 2, 500), 1000 + 500 + 500 + 14 + 500);
}

TEST(AttentionTable, AMissingSliceBorrowsTheNearestOne) {
  // (0, 0) is missing; (0, 1) is one away, (10, 0) ten.
  const AttentionTable table({Point(0, 0, 1, 16, 50), Point(10, 0, 0, 0, 900), Point(10, 0, 1, 16, 1000)});
  EXPECT_EQ(table.Lookup(0, 0, 0, 0), 50);
  EXPECT_EQ(table.Lookup(10, 0, 0, 0), 900);
}

TEST(AttentionTable, OfEqualPointsTheFirstCounts) {
  EXPECT_EQ(AttentionTable({Point(0, 0, 1, 16, 50), Point(0, 0, 1, 16, 70)}).Lookup(0, 0, 1, 16), 50);
}

TEST(MoeTable, BlendsOverExpertsAndTokens) {
  const MoeTable table({1, 3}, {LinearTable({1, 11}, {100, 200}), LinearTable({1, 11}, {300, 600})});
  EXPECT_EQ(table.Lookup(1, 0), 100) << "below one expert counts as one";
  EXPECT_EQ(table.Lookup(6, 2), (150 + 450) / 2);
  EXPECT_EQ(table.Lookup(1, 5), 500) << "beyond the last along the last two";
}

// Decode contexts of 100 to 1100, mean 300: a fifth of the way from the mean's time to the longest's.
TEST(DegreeTables, SkewedBatchesCostMoreByTheFactorOfTheirBucket) {
  DegreeTables tables;
  tables.attention = AttentionTable({Point(0, 0, 4, 0, 1000), Point(0, 0, 4, 2000, 3000)});
  EXPECT_EQ(tables.Attention(0, 0, 4, 1200, 1100, 100), 1300) << "no correction: the mean's time";
  tables.skew.alpha_default = 0.5;
  EXPECT_EQ(tables.Attention(0, 0, 4, 1200, 1100, 100), 1300 + 400);
  tables.skew.decodes = {.bins = {0, 2, 100}, .labels = {"few", "many"}};
  tables.skew.rate = {.bins = {-1, 0.5, 2}, .labels = {"low", "high"}};
  tables.skew.longest = {.bins = {0, 1000, 9000}, .labels = {"short", "long"}};
  tables.skew.prefill_context = {.bins = {-1, 0, 9000}, .labels = {"none", "some"}};
  tables.skew.alpha_by_bucket = {{"pc=0|many|low|long|none", 0.2}};
  EXPECT_EQ(tables.Attention(0, 0, 4, 1200, 1100, 100), 1300 + 160);
  EXPECT_EQ(tables.Attention(0, 0, 4, 1200, 300, 300), 1300) << "all alike: nothing to correct";
  EXPECT_EQ(tables.Attention(0, 0, 1, 300, 300, 300), 1300);
}

TEST(DegreeTables, LongerContextThatIsNotDearerIsNotCorrected) {
  DegreeTables tables;
  tables.attention = AttentionTable({Point(0, 0, 4, 0, 3000), Point(0, 0, 4, 2000, 1000)});
  tables.skew.alpha_default = 0.5;
  EXPECT_EQ(tables.Attention(0, 0, 4, 1200, 1100, 100), 2700);
}

}  // namespace
}  // namespace plumbline
