#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/torch/checkpoint/weight_source.h"
#include "tests/engine/torch/checkpoint/model_folder.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

ModelConfig TinyConfig() {
  ModelConfig config;
  config.architecture = "LlamaForCausalLM";
  config.vocab_size = 6;
  config.hidden_size = 4;
  config.intermediate_size = 6;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 2;
  config.max_position_embeddings = 8;
  return config;
}

std::vector<TensorToWrite> TinyTensors() {
  std::vector<TensorToWrite> tensors;
  for (const TensorSpec& spec : ListTensors(TinyConfig()))
    tensors.push_back({spec.name, "F32", spec.shape, {}});
  return tensors;
}

std::string Refusal(const ModelFolder& folder, const ModelConfig& config = TinyConfig()) {
  try {
    OpenCheckpoint(folder.path(), config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    return error.what();
  }
  return "accepted";
}

std::string RefusalOf(const std::vector<TensorToWrite>& tensors, const ModelConfig& config = TinyConfig()) {
  const ModelFolder folder;
  folder.Write("model.safetensors", SafetensorsBytes(tensors));
  return Refusal(folder, config);
}

// Writes the tensors over two shards; `map` may change the index before it is written.
std::string RefusalOfShards(const std::function<void(Json&)>& change) {
  const ModelFolder folder;
  const std::vector<TensorToWrite> tensors = TinyTensors();
  const std::vector<TensorToWrite> first(tensors.begin(), tensors.begin() + 3);
  const std::vector<TensorToWrite> second(tensors.begin() + 3, tensors.end());
  folder.Write("a.safetensors", SafetensorsBytes(first));
  folder.Write("b.safetensors", SafetensorsBytes(second));
  Json index;
  for (const TensorToWrite& tensor : first) index["weight_map"][tensor.name] = "a.safetensors";
  for (const TensorToWrite& tensor : second) index["weight_map"][tensor.name] = "b.safetensors";
  change(index);
  folder.Write("model.safetensors.index.json", index.dump());
  return Refusal(folder);
}

TEST(Checkpoint, SingleFileIsRead) {
  std::vector<TensorToWrite> tensors = TinyTensors();
  tensors.back().values.assign(24, 2.5f);
  const ModelFolder folder;
  folder.Write("model.safetensors", SafetensorsBytes(tensors));
  const std::unique_ptr<WeightSource> source = OpenCheckpoint(folder.path(), TinyConfig());
  std::vector<float> values(24);
  source->Read(ListTensors(TinyConfig()).back(), values);
  EXPECT_THAT(values, testing::Each(2.5f));
}

TEST(Checkpoint, ShardsAreRead) {
  EXPECT_EQ(RefusalOfShards([](Json&) {}), "accepted");
}

TEST(Checkpoint, NoWeightsAndTwoKindsOfThemAreRefused) {
  const ModelFolder folder;
  EXPECT_THAT(Refusal(folder), HasSubstr("holds no weights"));
  folder.Write("model.safetensors", "");
  folder.Write("model.safetensors.index.json", "");
  EXPECT_THAT(Refusal(folder), HasSubstr("both"));
}

TEST(Checkpoint, MissingTensorsAreNamedAndCounted) {
  std::vector<TensorToWrite> tensors = TinyTensors();
  tensors.erase(tensors.begin());
  EXPECT_THAT(RefusalOf(tensors), HasSubstr("lacks 1 of the tensors"));
  EXPECT_THAT(RefusalOf(tensors), HasSubstr("model.embed_tokens.weight"));
  EXPECT_THAT(RefusalOf({{"x", "F32", {1}, {}}}), HasSubstr("and 8 more"));
}

TEST(Checkpoint, ExtraTensorsAreNamed) {
  std::vector<TensorToWrite> tensors = TinyTensors();
  tensors.push_back({"model.layers.0.self_attn.q_proj.bias", "F32", {4}, {}});
  EXPECT_THAT(RefusalOf(tensors), HasSubstr("does not use: model.layers.0.self_attn.q_proj.bias"));
}

TEST(Checkpoint, KnownLeftoversAreNoExtras) {
  std::vector<TensorToWrite> tensors = TinyTensors();
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}, {}});
  EXPECT_EQ(RefusalOf(tensors), "accepted");
  ModelConfig tied = TinyConfig();
  tied.tie_word_embeddings = true;
  EXPECT_EQ(RefusalOf(tensors, tied), "accepted");
}

TEST(Checkpoint, WrongShapeAndDtypeAreNamed) {
  std::vector<TensorToWrite> tensors = TinyTensors();
  std::swap(tensors.back().shape[0], tensors.back().shape[1]);
  EXPECT_THAT(RefusalOf(tensors), testing::AllOf(HasSubstr("lm_head.weight"), HasSubstr("[4, 6]"),
                                                 HasSubstr("accepted: [6, 4]")));
  tensors = TinyTensors();
  tensors.back().dtype = "I16";
  EXPECT_THAT(RefusalOf(tensors), HasSubstr("I16"));
}

TEST(Checkpoint, IndexThatDoesNotMatchItsShardsIsRefused) {
  const std::string embedding = "model.embed_tokens.weight";
  EXPECT_THAT(RefusalOfShards([&](Json& index) { index["weight_map"][embedding] = "b.safetensors"; }),
              HasSubstr("not in the shard that it says: " + embedding));
  EXPECT_THAT(RefusalOfShards([&](Json& index) { index["weight_map"].erase(embedding); }),
              HasSubstr("does not list tensors that are in its shards: " + embedding));
  EXPECT_THAT(RefusalOfShards([&](Json& index) { index["weight_map"][embedding] = "c.safetensors"; }),
              HasSubstr("c.safetensors"));
  EXPECT_THAT(RefusalOfShards([&](Json& index) { index["weight_map"][embedding] = "../a.safetensors"; }),
              HasSubstr("must be the name of a file in the same folder"));
  EXPECT_THAT(RefusalOfShards([&](Json& index) { index["weight_map"][embedding] = 3; }),
              HasSubstr(embedding));
  EXPECT_THAT(RefusalOfShards([](Json& index) { index.erase("weight_map"); }), HasSubstr("weight_map"));
  EXPECT_THAT(RefusalOfShards([](Json& index) { index["weight_map"] = Json::object(); }),
              HasSubstr("lists no tensor"));
}

TEST(Checkpoint, TensorInTwoShardsIsRefused) {
  const ModelFolder folder;
  folder.Write("a.safetensors", SafetensorsBytes(TinyTensors()));
  folder.Write("b.safetensors", SafetensorsBytes(TinyTensors()));
  folder.Write("model.safetensors.index.json",
               R"({"weight_map":{"model.norm.weight":"a.safetensors","lm_head.weight":"b.safetensors"}})");
  EXPECT_THAT(Refusal(folder), HasSubstr("occurs in another shard"));
}

}  // namespace
}  // namespace plumbline
