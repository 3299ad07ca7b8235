#include "engine/torch/model_runner.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <fstream>
#include <stdexcept>

namespace plumbline {
namespace {

ModelConfig TinyConfig() {
  ModelConfig config;
  config.vocab_size = 32;
  config.hidden_size = 16;
  config.intermediate_size = 24;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 16;
  config.max_position_embeddings = 64;
  return config;
}

ModelRunner MakeRunner(const ModelConfig& config, cpu::Dtype dtype, std::int64_t most) {
  const std::unique_ptr<WeightSource> source = DummyWeights(1);
  return {config,
          LoadWeights(config, *source, dtype),
          {.max_tokens = most,
           .max_sequences = most,
           .max_model_len = config.max_position_embeddings,
           .block_size = 16,
           .num_blocks = most,
           .threads = 1}};
}

std::int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// `size` first tokens of as many requests, each in a block of its own.
struct DecodeBatch {
  explicit DecodeBatch(std::int64_t most) {
    for (std::int64_t i = 0; i < most; ++i) {
      ids.push_back(static_cast<TokenId>(i % 32));
      blocks.push_back(static_cast<BlockId>(i));
    }
  }

  const Batch& OfSize(std::size_t size) {
    batch.Clear();
    for (std::size_t i = 0; i < size; ++i) {
      batch.entries.push_back({.num_tokens = 1,
                               .samples = true,
                               .token_ids = std::span(ids).subspan(i, 1),
                               .block_table = std::span(blocks).subspan(i, 1)});
    }
    return batch;
  }

  std::vector<TokenId> ids;
  std::vector<BlockId> blocks;
  Batch batch;
};

class ModelRunnerMemory : public testing::TestWithParam<cpu::Dtype> {};

TEST_P(ModelRunnerMemory, StaysFlatOver2000BatchSizes) {
  constexpr std::int64_t kMost = 2000;
  constexpr std::int64_t kSlack = 512 << 10;
  ModelRunner runner = MakeRunner(TinyConfig(), GetParam(), kMost);
  DecodeBatch batches(kMost);
  std::vector<TokenId> sampled(kMost);
  runner.Execute(batches.OfSize(kMost), sampled);
  const std::int64_t before = ResidentBytes();
  for (std::size_t size = 1; size <= kMost; ++size) runner.Execute(batches.OfSize(size), sampled);
  EXPECT_LE(ResidentBytes(), before + kSlack);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ModelRunnerMemory,
                         testing::Values(cpu::Dtype::kFloat32, cpu::Dtype::kBFloat16));

TEST(ModelRunner, StepWithoutSamplesOnlyFillsTheCache) {
  ModelRunner runner = MakeRunner(TinyConfig(), cpu::Dtype::kFloat32, 16);
  const std::vector<TokenId> ids = {3, 1, 4, 1, 5};
  const std::vector<BlockId> blocks = {2};
  Batch batch;
  batch.entries = {{.num_tokens = 5, .token_ids = ids, .block_table = blocks}};
  std::vector<TokenId> sampled = {-7};
  runner.Execute(batch, sampled);
  EXPECT_EQ(sampled[0], -7);
  EXPECT_TRUE(runner.logits().empty());
}

TEST(ModelRunner, BatchBeyondItsSizesIsABugOfTheCaller) {
  ModelRunner runner = MakeRunner(TinyConfig(), cpu::Dtype::kFloat32, 16);
  DecodeBatch batches(17);
  std::vector<TokenId> sampled(17);
  EXPECT_THROW(runner.Execute(batches.OfSize(17), sampled), std::logic_error);
}

TEST(ModelRunner, AccountsForItsTime) {
  ModelRunner runner = MakeRunner(TinyConfig(), cpu::Dtype::kFloat32, 16);
  DecodeBatch batches(16);
  std::vector<TokenId> sampled(16);
  runner.Execute(batches.OfSize(16), sampled);
  EXPECT_GT(runner.times().products_ns, 0);
  EXPECT_GT(runner.times().attention_ns, 0);
  EXPECT_GT(runner.times().rest_ns, 0);
}

TEST(KvBlockBytes, CountsKeysAndValuesOfAllLayers) {
  EXPECT_EQ(KvBlockBytes(TinyConfig(), 16, cpu::Dtype::kFloat32), 2 * 2 * 16 * 16 * 4);
  EXPECT_EQ(KvBlockBytes(TinyConfig(), 32, cpu::Dtype::kBFloat16), 2 * 2 * 32 * 16 * 2);
}

}  // namespace
}  // namespace plumbline
