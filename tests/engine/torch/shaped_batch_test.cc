#include "engine/torch/shaped_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace plumbline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr BatchLimits kLimits = {.max_tokens = 64,
                                 .max_sequences = 4,
                                 .max_model_len = 100,
                                 .block_size = 16,
                                 .num_blocks = 10,
                                 .vocab_size = 50};

std::string Refusal(const StepShape& shape) {
  try {
    const ShapedBatch batch(shape, kLimits);
    return "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    return error.what();
  }
}

TEST(ShapedBatch, GivesEveryEntryItsTokensAndBlocksOfItsOwn) {
  const ShapedBatch shaped(
      {.prefills = {{.tokens = 20, .past = 30, .sample = false}}, .decode_contexts = {16, 3}}, kLimits);
  const Batch& batch = shaped.batch();
  ASSERT_EQ(batch.entries.size(), 3u);
  EXPECT_EQ(batch.total_tokens, 22);
  EXPECT_EQ(batch.entries[0].first_position, 30);
  EXPECT_EQ(batch.entries[0].token_ids.size(), 20u);
  EXPECT_FALSE(batch.entries[0].samples);
  EXPECT_THAT(batch.entries[0].block_table, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(batch.entries[1].num_tokens, 1);
  EXPECT_TRUE(batch.entries[1].samples);
  EXPECT_THAT(batch.entries[1].block_table, ElementsAre(4, 5));
  EXPECT_THAT(batch.entries[2].block_table, ElementsAre(6));
  // Positions 30 to 49, position 16, position 3.
  EXPECT_THAT(shaped.written_blocks(), ElementsAre(1, 2, 3, 5, 6));
  for (const TokenId id : batch.entries[0].token_ids) EXPECT_LT(id, 50);
}

TEST(ShapedBatch, NamesTheLimitThatAShapeExceeds) {
  EXPECT_THAT(Refusal({}), HasSubstr("at least 1"));
  EXPECT_THAT(Refusal({.prefills = {{.tokens = 0}}}), HasSubstr("tokens of a request"));
  EXPECT_THAT(Refusal({.prefills = {{.tokens = 65}}}), HasSubstr("65 tokens"));
  EXPECT_THAT(Refusal({.prefills = {{.tokens = 40}, {.tokens = 40}}}), HasSubstr("at most 64"));
  EXPECT_THAT(Refusal({.decode_contexts = {1, 1, 1, 1, 1}}), HasSubstr("5 requests"));
  EXPECT_THAT(Refusal({.decode_contexts = {100}}), HasSubstr("positions of a request"));
  EXPECT_THAT(Refusal({.decode_contexts = {INT64_MAX}}), HasSubstr("positions of a request"));
  EXPECT_THAT(Refusal({.decode_contexts = {-1}}), HasSubstr("tokens before a request's"));
  EXPECT_THAT(Refusal({.decode_contexts = {90, 90}}), HasSubstr("12 KV blocks"));
}

}  // namespace
}  // namespace plumbline
