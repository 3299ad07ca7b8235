#include "engine/torch/checkpoint/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/json.h"

namespace plumbline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json Llama() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", 64},
          {"intermediate_size", 160},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 512},
          {"vocab_size", 256}};
}

Json Qwen(const char* architecture, const char* type) {
  Json config = Llama();
  config["architectures"] = {architecture};
  config["model_type"] = type;
  return config;
}

ModelConfig Parse(const Json& config) {
  return ParseModelConfig(config.dump(), "config.json");
}

std::string Refusal(const Json& config) {
  try {
    Parse(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    return error.what();
  }
  return "accepted";
}

std::string RefusalWith(const std::string& key, const Json& value) {
  Json config = Llama();
  config[key] = value;
  return Refusal(config);
}

TEST(ModelConfig, FillsInWhatTheFamilyDefaults) {
  Json config = Llama();
  config.erase("num_key_value_heads");
  const ModelConfig model = Parse(config);
  EXPECT_EQ(model.num_key_value_heads, 4);
  EXPECT_EQ(model.head_dim, 16);
  EXPECT_EQ(model.rope.theta, 10000);
  EXPECT_EQ(model.rms_norm_eps, 1e-6);
  EXPECT_EQ(model.dtype, "float32");
  EXPECT_FALSE(model.tie_word_embeddings || model.qkv_bias || model.output_bias || model.mlp_bias ||
               model.qk_norm);
}

TEST(ModelConfig, Qwen2HasQueryKeyValueBiasesWhateverTheFileSays) {
  const ModelConfig model = Parse(Qwen("Qwen2ForCausalLM", "qwen2"));
  EXPECT_TRUE(model.qkv_bias);
  EXPECT_FALSE(model.output_bias || model.qk_norm);
}

TEST(ModelConfig, Qwen3HasHeadNormsAndItsOwnHeadSize) {
  const ModelConfig model = Parse(Qwen("Qwen3ForCausalLM", "qwen3"));
  EXPECT_TRUE(model.qk_norm);
  EXPECT_FALSE(model.qkv_bias);
  EXPECT_EQ(model.head_dim, 128);
}

TEST(ModelConfig, AttentionBiasCoversTheOutputProjection) {
  Json config = Llama();
  config["attention_bias"] = true;
  EXPECT_TRUE(Parse(config).qkv_bias && Parse(config).output_bias);
}

TEST(ModelConfig, ReadsTheDtypeOfBothGenerations) {
  Json config = Llama();
  config["torch_dtype"] = "bfloat16";
  EXPECT_EQ(Parse(config).dtype, "bfloat16");
  config["dtype"] = "float32";
  EXPECT_THAT(Refusal(config), HasSubstr("dtype: contradicts torch_dtype"));
  config.erase("torch_dtype");
  EXPECT_EQ(Parse(config).dtype, "float32");
}

TEST(ModelConfig, UnknownArchitectureNamesTheKnownOnes) {
  EXPECT_THAT(RefusalWith("architectures", {"GPT2LMHeadModel"}),
              testing::AllOf(HasSubstr("GPT2LMHeadModel"),
                             HasSubstr("LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM")));
  EXPECT_THAT(RefusalWith("architectures", Json::array()), HasSubstr("LlamaForCausalLM"));
  EXPECT_THAT(RefusalWith("model_type", "mistral"), HasSubstr("model_type"));
}

TEST(ModelConfig, RefusesByNameWhatItCannotCompute) {
  EXPECT_THAT(RefusalWith("quantization_config", {{"quant_method", "awq"}}),
              HasSubstr("quantization_config"));
  EXPECT_THAT(RefusalWith("num_local_experts", 8), HasSubstr("num_local_experts: mixture of experts"));
  EXPECT_THAT(RefusalWith("hidden_act", "gelu"), HasSubstr("hidden_act"));
  EXPECT_THAT(RefusalWith("final_logit_softcapping", 30.0), HasSubstr("final_logit_softcapping"));
  EXPECT_THAT(RefusalWith("partial_rotary_factor", 0.5), HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(RefusalWith("sliding_window", 4096), HasSubstr("sliding_window"));
  EXPECT_THAT(RefusalWith("layer_types", {"full_attention", "sliding_attention"}),
              HasSubstr("layer_types[1]"));
}

TEST(ModelConfig, SlidingWindowThatNoLayerUsesIsNoFeature) {
  Json config = Qwen("Qwen2ForCausalLM", "qwen2");
  config["sliding_window"] = 32768;
  config["use_sliding_window"] = false;
  EXPECT_EQ(Refusal(config), "accepted");
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 2;
  EXPECT_EQ(Refusal(config), "accepted");
  config["max_window_layers"] = 1;
  EXPECT_THAT(Refusal(config), HasSubstr("sliding_window"));
}

TEST(ModelConfig, SizesOutOfRangeAreNamed) {
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "vocab_size", "max_position_embeddings", "head_dim"}) {
    EXPECT_THAT(RefusalWith(key, 0), HasSubstr(key));
    EXPECT_THAT(RefusalWith(key, -1), HasSubstr(key));
    EXPECT_THAT(RefusalWith(key, std::int64_t{1} << 40), HasSubstr(key));
    EXPECT_THAT(RefusalWith(key, "many"), HasSubstr(key));
  }
  EXPECT_THAT(RefusalWith("num_key_value_heads", 3), HasSubstr("must divide"));
  EXPECT_THAT(RefusalWith("head_dim", 15), HasSubstr("must be even"));
  EXPECT_THAT(RefusalWith("rms_norm_eps", -1.0), HasSubstr("rms_norm_eps"));
}

TEST(ModelConfig, ReportsKeysThatItDoesNotRead) {
  Json config = Llama();
  config["embedding_multiplier"] = 12.0;
  config["use_cache"] = true;
  EXPECT_THAT(Parse(config).unread_keys, ElementsAre("embedding_multiplier"));
}

TEST(ModelConfig, MissingFolderAndFileAreNamed) {
  EXPECT_THROW(ReadModelConfig("/no/such/folder"), Error);
  EXPECT_THROW(ReadModelConfig(testing::TempDir()), Error);
}

TEST(ModelConfig, ReadsTheFilesOfTransformers5) {
  const std::string folder = std::string(PLUMBLINE_SOURCE_DIR) + "/tests/testdata/numerics/";
  EXPECT_EQ(ReadModelConfig(folder + "llama-hd32").head_dim, 32);
  EXPECT_TRUE(ReadModelConfig(folder + "llama3-rope").rope.llama3);
  EXPECT_TRUE(ReadModelConfig(folder + "qwen3-tied").tie_word_embeddings);
  for (const char* name :
       {"llama-tiny", "llama-hd32", "llama3-rope", "qwen2-tiny", "qwen3-tiny", "qwen3-tied"}) {
    EXPECT_THAT(ReadModelConfig(folder + name).unread_keys, testing::IsEmpty()) << name;
  }
}

}  // namespace
}  // namespace plumbline
