#include "engine/simulated/lower_tier.h"

#include <gtest/gtest.h>

#include "engine/core/block_hash.h"

namespace plumbline {
namespace {

constexpr std::int64_t kBlock = 128;  // two a chunk of 256 tokens

Sequence Prompt(std::int64_t tokens, TokenId first) {
  Sequence sequence;
  for (std::int64_t i = 0; i < tokens; ++i) sequence.token_ids.push_back(first + static_cast<TokenId>(i));
  sequence.input_toks = sequence.reached = tokens;
  ExtendHashChain(sequence.token_ids, kBlock, sequence.hash_chain);
  return sequence;
}

TEST(LowerTier, HasWhatWasKeptInWholeChunks) {
  LowerTier tier(kBlock, 1000, 1e9);
  const Sequence prompt = Prompt(700, 0);
  EXPECT_EQ(tier.Find(prompt, 0), 0);
  tier.Keep(prompt, 0, 3);
  EXPECT_EQ(tier.Find(prompt, 0), 256) << "the second chunk's second block was not there yet";
  tier.Keep(prompt, 3, 5);
  EXPECT_EQ(tier.Find(prompt, 0), 512);
  EXPECT_EQ(tier.Find(Prompt(700, 9), 0), 0) << "another prompt";
}

TEST(LowerTier, IsNotAskedForLessThanAChunkMore) {
  LowerTier tier(kBlock, 1000, 1e9);
  const Sequence prompt = Prompt(700, 0);
  tier.Keep(prompt, 0, 5);
  EXPECT_EQ(tier.Find(prompt, 128), 384);
  EXPECT_EQ(tier.Find(prompt, 256), 256);
  EXPECT_EQ(tier.Find(prompt, 384), 0) << "gains 128";
  EXPECT_EQ(tier.Find(prompt, 512), 0);
}

TEST(LowerTier, ARecallMovesWholeChunks) {
  LowerTier tier(kBlock, 1000, 1e9);
  const Sequence prompt = Prompt(700, 0);
  tier.Keep(prompt, 0, 5);
  tier.Recall(prompt, 128);
  EXPECT_EQ(tier.TakeRecalledBytes(), 2 * 2000) << "with the chunk that the device has half of";
  EXPECT_EQ(tier.TakeRecalledBytes(), 0);
}

TEST(LowerTier, TheOldestChunkMakesRoom) {
  LowerTier tier(kBlock, 1000, 2 * 2000.0);
  const Sequence first = Prompt(300, 0);
  const Sequence second = Prompt(300, 1000);
  const Sequence third = Prompt(300, 2000);
  for (const Sequence* prompt : {&first, &second, &third}) tier.Keep(*prompt, 0, 2);
  EXPECT_EQ(tier.Find(first, 0), 0);
  EXPECT_EQ(tier.Find(second, 0), 256);
  EXPECT_EQ(tier.Find(third, 0), 256);
}

TEST(LowerTier, WithoutRoomForAChunkKeepsNothing) {
  LowerTier tier(kBlock, 1000, 1999);
  const Sequence prompt = Prompt(300, 0);
  tier.Keep(prompt, 0, 2);
  EXPECT_EQ(tier.Find(prompt, 0), 0);
}

}  // namespace
}  // namespace plumbline
