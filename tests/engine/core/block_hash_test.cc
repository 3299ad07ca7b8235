#include "engine/core/block_hash.h"

#include <gtest/gtest.h>
#include <set>

namespace plumbline {
namespace {

using Key = std::pair<std::uint64_t, std::uint64_t>;

Key KeyOf(const BlockHash& hash) {
  return {hash.low, hash.high};
}

TEST(BlockHash, DependsOnEveryTokenOnItsPlaceAndOnTheParent) {
  const std::vector<TokenId> base = {1, 2, 3, 4};
  std::set<Key> seen = {KeyOf(HashBlock({}, base))};
  for (std::size_t i = 0; i < base.size(); ++i) {
    std::vector<TokenId> changed = base;
    changed[i] += 1000;
    EXPECT_TRUE(seen.insert(KeyOf(HashBlock({}, changed))).second) << "token " << i;
  }
  EXPECT_TRUE(seen.insert(KeyOf(HashBlock({}, std::vector<TokenId>{2, 1, 3, 4}))).second);
  EXPECT_TRUE(seen.insert(KeyOf(HashBlock({.low = 1, .high = 0}, base))).second);
  EXPECT_TRUE(seen.insert(KeyOf(HashBlock({.low = 0, .high = 1}, base))).second);
}

TEST(BlockHash, SmallIdsDoNotCollide) {
  std::set<std::uint64_t> low;
  std::set<std::uint64_t> high;
  for (TokenId a = 0; a < 300; ++a) {
    for (TokenId b = 0; b < 300; ++b) {
      const BlockHash hash = HashBlock({}, std::vector<TokenId>{a, b});
      low.insert(hash.low);
      high.insert(hash.high);
    }
  }
  EXPECT_EQ(low.size(), 90000u);
  EXPECT_EQ(high.size(), 90000u);
}

TEST(ExtendHashChain, CoversFullBlocksOnly) {
  std::vector<TokenId> ids = {1, 2, 3, 4, 5, 6, 7};
  std::vector<BlockHash> chain;
  ExtendHashChain(ids, 3, chain);
  EXPECT_EQ(chain.size(), 2u);
}

TEST(ExtendHashChain, GrowsToTheSameChainAsAtOnce) {
  const std::vector<TokenId> ids = {5, 6, 7, 8, 9, 10, 11, 12, 13};
  std::vector<BlockHash> at_once;
  ExtendHashChain(ids, 4, at_once);
  std::vector<BlockHash> grown;
  for (std::size_t n = 0; n <= ids.size(); ++n) ExtendHashChain(std::span(ids).first(n), 4, grown);
  EXPECT_EQ(grown, at_once);
}

}  // namespace
}  // namespace plumbline
