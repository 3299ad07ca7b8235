#include "engine/core/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler_testing.h"

namespace plumbline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kBlock = 4;

Sequence Prompt(RequestId id, std::vector<TokenId> ids) {
  Sequence sequence = MakeSequence(id, static_cast<std::int64_t>(ids.size()), 10);
  sequence.token_ids = std::move(ids);
  sequence.reached = sequence.input_toks;
  ExtendHashChain(sequence.token_ids, kBlock, sequence.hash_chain);
  return sequence;
}

TEST(KvCache, TakesBlocksAsTokensNeedThem) {
  KvCache cache(10, kBlock, true);
  Sequence s = Prompt(0, Ids(9));
  ASSERT_TRUE(cache.Allocate(s, 5));
  EXPECT_THAT(s.blocks, ElementsAre(0, 1));
  s.computed = 5;
  ASSERT_TRUE(cache.Allocate(s, 3));
  EXPECT_EQ(s.blocks.size(), 2u) << "eight tokens fit into two blocks";
  s.computed = 8;
  ASSERT_TRUE(cache.Allocate(s, 1));
  EXPECT_THAT(s.blocks, ElementsAre(0, 1, 2));
}

TEST(KvCache, RefusesWithoutChangeWhenBlocksDoNotSuffice) {
  KvCache cache(2, kBlock, true);
  Sequence s = Prompt(0, Ids(9));
  EXPECT_FALSE(cache.Allocate(s, 9));
  EXPECT_THAT(s.blocks, IsEmpty());
  EXPECT_EQ(cache.pool().num_free(), 2);
  EXPECT_TRUE(cache.Allocate(s, 8));
}

TEST(KvCache, FindsThePrefixOfBlocksThatAreScheduledButNotYetComputed) {
  KvCache cache(10, kBlock, true);
  Sequence first = Prompt(0, Ids(9));
  ASSERT_TRUE(cache.Allocate(first, 9));
  Sequence second = Prompt(1, {0, 1, 2, 3, 4, 5, 6, 99, 100});
  EXPECT_THAT(cache.FindPrefix(second), ElementsAre(0));
}

TEST(KvCache, LeavesAtLeastOneTokenToCompute) {
  KvCache cache(10, kBlock, true);
  Sequence first = Prompt(0, Ids(8));
  ASSERT_TRUE(cache.Allocate(first, 8));
  Sequence same = Prompt(1, Ids(8));
  EXPECT_THAT(cache.FindPrefix(same), ElementsAre(0)) << "both blocks match, the second would leave nothing";
}

TEST(KvCache, FreedBlocksServeHitsAndAreRevivedFirst) {
  KvCache cache(4, kBlock, true);
  Sequence first = Prompt(0, Ids(9));
  ASSERT_TRUE(cache.Allocate(first, 9));
  cache.Free(first);
  EXPECT_EQ(cache.pool().num_free(), 4);
  EXPECT_EQ(cache.pool().num_free_indexed(), 2);
  Sequence again = Prompt(1, Ids(9));
  const auto hits = cache.FindPrefix(again);
  ASSERT_THAT(hits, ElementsAre(0, 1));
  EXPECT_EQ(cache.BlocksRequired(again, 9, hits), 3) << "one new block and two that nobody holds";
  ASSERT_TRUE(cache.Allocate(again, 1, hits));
  EXPECT_THAT(again.blocks, ElementsAre(0, 1, 3))
      << "block 3 was never used, block 2 was freed before 1 and 0";
  EXPECT_EQ(again.hashed_blocks, 2);
}

TEST(KvCache, HitsThatOthersHoldCostNothing) {
  KvCache cache(4, kBlock, true);
  Sequence first = Prompt(0, Ids(9));
  ASSERT_TRUE(cache.Allocate(first, 9));
  Sequence again = Prompt(1, Ids(9));
  const auto hits = cache.FindPrefix(again);
  EXPECT_EQ(cache.BlocksRequired(again, 9, hits), 1);
  ASSERT_TRUE(cache.Allocate(again, 1, hits));
  EXPECT_EQ(cache.pool().num_free(), 0);
  EXPECT_EQ(cache.pool().holders(0), 2);
}

TEST(KvCache, WithoutPrefixCachingNothingIsFound) {
  KvCache cache(4, kBlock, false);
  Sequence first = Prompt(0, Ids(9));
  ASSERT_TRUE(cache.Allocate(first, 9));
  EXPECT_THAT(cache.FindPrefix(Prompt(1, Ids(9))), IsEmpty());
  EXPECT_FALSE(cache.pool().HasHash(0));
}

TEST(KvCache, ARequestWithoutIdsIsLeftAlone) {
  KvCache cache(4, kBlock, true);
  Sequence s = MakeSequence(0, 9, 1);
  s.reached = 9;
  ASSERT_TRUE(cache.Allocate(s, 9));
  EXPECT_FALSE(cache.pool().HasHash(0));
  EXPECT_THAT(cache.FindPrefix(s), IsEmpty());
}

}  // namespace
}  // namespace plumbline
