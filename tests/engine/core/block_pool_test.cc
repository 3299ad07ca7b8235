#include "engine/core/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <stdexcept>

namespace plumbline {
namespace {

using testing::ElementsAre;

BlockHash Hash(std::uint64_t content) {
  return {.low = content, .high = ~content};
}

std::vector<BlockId> TakeAll(BlockPool& pool) {
  std::vector<BlockId> taken;
  while (pool.num_free() > 0) taken.push_back(pool.Take());
  return taken;
}

TEST(BlockPool, GivesBlocksInOrderThenTheLongestFree) {
  BlockPool pool(4);
  const std::vector<BlockId> first = {pool.Take(), pool.Take(), pool.Take()};
  EXPECT_THAT(first, ElementsAre(0, 1, 2));
  pool.Free(first);
  EXPECT_THAT(TakeAll(pool), ElementsAre(3, 2, 1, 0)) << "freed from the last to the first";
}

TEST(BlockPool, TakingFromAnEmptyPoolIsABug) {
  BlockPool pool(1);
  pool.Take();
  EXPECT_THROW(pool.Take(), std::logic_error);
}

TEST(BlockPool, FreeingTwiceIsABug) {
  BlockPool pool(2);
  const std::vector<BlockId> block = {pool.Take()};
  pool.Free(block);
  EXPECT_THROW(pool.Free(block), std::logic_error);
}

TEST(BlockPool, SharedBlockIsFreeWhenItsLastHolderLeaves) {
  BlockPool pool(2);
  const std::vector<BlockId> block = {pool.Take()};
  pool.Touch(block[0]);
  pool.Free(block);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.holders(block[0]), 1);
  pool.Free(block);
  EXPECT_EQ(pool.num_free(), 2);
}

TEST(BlockPool, FreeBlockIsFoundUntilItIsTakenAgain) {
  BlockPool pool(2);
  const std::vector<BlockId> block = {pool.Take()};
  pool.SetHash(block[0], Hash(7));
  pool.Free(block);
  EXPECT_EQ(pool.Find(Hash(7)), block[0]);
  EXPECT_EQ(pool.num_free_indexed(), 1);
  TakeAll(pool);
  EXPECT_EQ(pool.Find(Hash(7)), BlockPool::kNoBlock);
  EXPECT_EQ(pool.num_free_indexed(), 0);
}

TEST(BlockPool, TouchTakesABlockOutOfTheMiddleOfTheFreeList) {
  BlockPool pool(3);
  pool.Touch(1);
  EXPECT_THAT(TakeAll(pool), ElementsAre(0, 2));
}

TEST(BlockPool, NewestBlockOfAContentWins) {
  BlockPool pool(3);
  const BlockId older = pool.Take();
  const BlockId newer = pool.Take();
  pool.SetHash(older, Hash(1));
  pool.SetHash(newer, Hash(1));
  EXPECT_EQ(pool.Find(Hash(1)), newer);
  // The older one goes and comes back as something else: the newer one stays findable.
  pool.Free(std::vector<BlockId>{older});
  EXPECT_EQ(pool.num_free_indexed(), 0);
  TakeAll(pool);
  EXPECT_EQ(pool.Find(Hash(1)), newer);
}

TEST(BlockPool, ContentOfABlockIsSetOnce) {
  BlockPool pool(1);
  const BlockId block = pool.Take();
  pool.SetHash(block, Hash(1));
  pool.SetHash(block, Hash(2));
  EXPECT_EQ(pool.Find(Hash(1)), block);
  EXPECT_EQ(pool.Find(Hash(2)), BlockPool::kNoBlock);
}

TEST(BlockPool, ForgetsContentsOnlyWhenNothingIsHeld) {
  BlockPool pool(2);
  const std::vector<BlockId> block = {pool.Take()};
  pool.SetHash(block[0], Hash(1));
  EXPECT_FALSE(pool.ForgetContents());
  EXPECT_EQ(pool.Find(Hash(1)), block[0]);
  pool.Free(block);
  EXPECT_TRUE(pool.ForgetContents());
  EXPECT_EQ(pool.Find(Hash(1)), BlockPool::kNoBlock);
  EXPECT_EQ(pool.num_free_indexed(), 0);
}

// Against a map, with hashes that collide in their home slots on purpose.
TEST(BlockPool, IndexAgreesWithAMapOverRandomUse) {
  std::mt19937_64 random(1);
  BlockPool pool(50);
  std::map<std::uint64_t, BlockId> model;
  std::vector<std::vector<BlockId>> held;
  for (int step = 0; step < 20000; ++step) {
    if (pool.num_free() > 0 && random() % 2 == 0) {
      const BlockId block = pool.Take();
      std::erase_if(model, [&](const auto& entry) { return entry.second == block; });
      const std::uint64_t content = (random() % 60) << 5;
      pool.SetHash(block, Hash(content));
      model[content] = block;
      held.push_back({block});
    } else if (!held.empty()) {
      const std::size_t i = random() % held.size();
      pool.Free(held[i]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const std::uint64_t asked = (random() % 60) << 5;
    const auto found = model.find(asked);
    ASSERT_EQ(pool.Find(Hash(asked)), found == model.end() ? BlockPool::kNoBlock : found->second);
  }
}

}  // namespace
}  // namespace plumbline
