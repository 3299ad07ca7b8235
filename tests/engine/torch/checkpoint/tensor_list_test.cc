#include "engine/torch/checkpoint/tensor_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plumbline {
namespace {

using testing::Contains;
using testing::Not;

std::vector<std::string> Names(const ModelConfig& config) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : ListTensors(config)) names.push_back(tensor.name);
  return names;
}

TEST(TensorList, FollowsTheConfig) {
  ModelConfig config = {.num_hidden_layers = 2};
  EXPECT_EQ(Names(config).size(), 1u + 2 * 9 + 2);
  EXPECT_THAT(Names(config), Contains("lm_head.weight"));
  config.tie_word_embeddings = true;
  EXPECT_THAT(Names(config), Not(Contains("lm_head.weight")));
  config.qk_norm = true;
  EXPECT_THAT(Names(config), Contains("model.layers.1.self_attn.k_norm.weight"));
  config.qkv_bias = true;
  EXPECT_THAT(Names(config), Contains("model.layers.0.self_attn.v_proj.bias"));
  EXPECT_THAT(Names(config), Not(Contains("model.layers.0.self_attn.o_proj.bias")));
  config.output_bias = config.mlp_bias = true;
  EXPECT_THAT(Names(config), Contains("model.layers.0.self_attn.o_proj.bias"));
  EXPECT_THAT(Names(config), Contains("model.layers.0.mlp.down_proj.bias"));
}

// 2 * 8192 * 512 + 512 + 8 * (2 * 512 + 2 * 512 * 512 + 2 * 512 * 256 + 3 * 512 * 1536).
TEST(TensorList, CountsParameters) {
  const ModelConfig config = {.vocab_size = 8192,
                              .hidden_size = 512,
                              .intermediate_size = 1536,
                              .num_hidden_layers = 8,
                              .num_attention_heads = 8,
                              .num_key_value_heads = 4,
                              .head_dim = 64};
  EXPECT_EQ(CountParameters(config), 33'563'136);
}

}  // namespace
}  // namespace plumbline
