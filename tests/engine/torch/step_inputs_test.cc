#include "engine/torch/step_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>

namespace plumbline {
namespace {

using testing::ElementsAre;

const std::vector<TokenId> kPrompt = {7, 8, 9};
const std::vector<TokenId> kDecode = {5};
const std::vector<BlockId> kPromptBlocks = {4, 6};
const std::vector<BlockId> kDecodeBlocks = {2};

// The second chunk of a prompt, which samples nothing yet, and a decode.
Batch ChunkAndDecode() {
  Batch batch;
  batch.entries = {{.first_position = 2, .num_tokens = 3, .token_ids = kPrompt, .block_table = kPromptBlocks},
                   {.first_position = 1,
                    .num_tokens = 1,
                    .samples = true,
                    .token_ids = kDecode,
                    .block_table = kDecodeBlocks}};
  return batch;
}

TEST(StepInputs, LaysTokensOutOneEntryAfterTheOther) {
  StepInputs inputs(8, 2, 8, 4);
  inputs.Fill(ChunkAndDecode());
  EXPECT_THAT(inputs.ids, ElementsAre(7, 8, 9, 5));
  EXPECT_THAT(inputs.positions, ElementsAre(2, 3, 4, 1));
  EXPECT_THAT(inputs.slots, ElementsAre(18, 19, 24, 9));
  EXPECT_THAT(inputs.query_starts, ElementsAre(0, 3, 4));
  EXPECT_THAT(inputs.context_lengths, ElementsAre(5, 2));
  EXPECT_THAT(inputs.block_tables, ElementsAre(4, 6, 2, 0));
}

TEST(StepInputs, ListsTheRowsThatAreSampled) {
  StepInputs inputs(8, 2, 8, 4);
  inputs.Fill(ChunkAndDecode());
  EXPECT_EQ(inputs.sampled(), 1);
  EXPECT_THAT(inputs.sampled_rows, ElementsAre(3));
  EXPECT_THAT(inputs.sampled_starts, ElementsAre(0, 1));
  EXPECT_THAT(inputs.sampled_context_lengths, ElementsAre(2));
  EXPECT_THAT(inputs.sampled_block_tables, ElementsAre(2, 0));
}

TEST(StepInputs, ForgetsTheStepBefore) {
  StepInputs inputs(8, 2, 8, 4);
  inputs.Fill(ChunkAndDecode());
  inputs.Fill(ChunkAndDecode());
  EXPECT_EQ(inputs.tokens(), 4);
  EXPECT_EQ(inputs.sequences(), 2);
}

TEST(StepInputs, WhatDoesNotFitIsABugOfTheCaller) {
  EXPECT_THROW(StepInputs(3, 2, 8, 4).Fill(ChunkAndDecode()), std::logic_error);
  EXPECT_THROW(StepInputs(8, 1, 8, 4).Fill(ChunkAndDecode()), std::logic_error);
  EXPECT_THROW(StepInputs(8, 2, 4, 4).Fill(ChunkAndDecode()), std::logic_error);
  Batch counts_only = ChunkAndDecode();
  counts_only.entries[0].token_ids = {};
  EXPECT_THROW(StepInputs(8, 2, 8, 4).Fill(counts_only), std::logic_error);
  Batch short_table = ChunkAndDecode();
  short_table.entries[0].block_table = kDecodeBlocks;
  EXPECT_THROW(StepInputs(8, 2, 8, 4).Fill(short_table), std::logic_error);
}

}  // namespace
}  // namespace plumbline
