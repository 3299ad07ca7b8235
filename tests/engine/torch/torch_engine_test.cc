// The engine from its folder of weights to its answers, through the plug-in as programs load it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <condition_variable>
#include <mutex>

#include "engine/api/registry.h"
#include "engine/base/error.h"
#include "engine/base/json.h"
#include "tests/engine/torch/checkpoint/model_folder.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

std::string NumericsFolder(const std::string& name) {
  return std::string(PLUMBLINE_SOURCE_DIR) + "/tests/testdata/numerics/" + name;
}

EngineSpec Spec(const std::string& model) {
  EngineSpec spec;
  spec.model = model;
  spec.dtype = "float32";
  spec.kv_cache_memory_bytes = 4 << 20;
  spec.max_num_seqs = 16;
  spec.max_num_batched_tokens = 256;
  return spec;
}

EngineRegistry& Registry() {
  static EngineRegistry& registry = []() -> EngineRegistry& {
    static EngineRegistry made;
    made.AddPluginFolder(std::string(PLUMBLINE_BINARY_DIR) + "/lib");
    return made;
  }();
  return registry;
}

// Collects answers and lets the test wait for them.
class WaitingSink final : public EventSink {
 public:
  void OnEvents(std::span<const Event> events) override {
    const std::lock_guard lock(mutex_);
    for (const Event& event : events) {
      if (event.kind == EventKind::kTokens) {
        auto& ids = ids_[event.id];
        ids.insert(ids.end(), event.token_ids, event.token_ids + event.count);
      } else if (event.kind == EventKind::kFinished) {
        texts_[event.id] = event.text;
        reasons_[event.id] = event.reason;
        changed_.notify_all();
      }
    }
  }

  void WaitFor(std::size_t requests) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reasons_.size() == requests; });
  }

  std::vector<TokenId> ids(RequestId id) {
    const std::lock_guard lock(mutex_);
    return ids_[id];
  }
  FinishReason reason(RequestId id) {
    const std::lock_guard lock(mutex_);
    return reasons_.at(id);
  }
  std::string text(RequestId id) {
    const std::lock_guard lock(mutex_);
    return texts_.at(id);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestId, std::vector<TokenId>> ids_;
  std::map<RequestId, FinishReason> reasons_;
  std::map<RequestId, std::string> texts_;
};

Request MakeRequest(RequestId id, std::vector<TokenId> prompt, std::int64_t outputs,
                    const SamplingParams& sampling = {}) {
  Request request;
  request.id = id;
  request.input_toks = static_cast<std::int64_t>(prompt.size());
  request.output_toks = outputs;
  request.prompt_token_ids = std::move(prompt);
  request.sampling = sampling;
  return request;
}

std::vector<std::vector<TokenId>> Serve(const EngineSpec& spec, const std::vector<Request>& requests) {
  WaitingSink sink;
  const std::unique_ptr<Engine> engine = Registry().Boot(spec);
  engine->Submit(requests, sink);
  sink.WaitFor(requests.size());
  engine->Shutdown();
  std::vector<std::vector<TokenId>> answers;
  for (const Request& request : requests) answers.push_back(sink.ids(request.id));
  return answers;
}

std::string BootRefusal(const EngineSpec& spec, ExitCode expected = ExitCode::kBadInput) {
  try {
    Registry().Boot(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected);
    return error.what();
  }
  return "booted";
}

TEST(TorchEngine, AnswersLikeTransformers) {
  const Json reference = ReadJsonFile(NumericsFolder("llama-tiny") + "/reference.json");
  std::vector<Request> requests;
  std::vector<std::vector<TokenId>> expected;
  for (const Json& prompt : reference.at("prompts")) {
    requests.push_back(MakeRequest(static_cast<RequestId>(requests.size()),
                                   prompt.at("prompt").get<std::vector<TokenId>>(), 16));
    expected.push_back(prompt.at("greedy_16").get<std::vector<TokenId>>());
  }
  EXPECT_EQ(Serve(Spec(NumericsFolder("llama-tiny")), requests), expected);
}

TEST(TorchEngine, ProbedStepsLeaveAnswersAndCachedPrefixesAsTheyWere) {
  EngineSpec spec = Spec(NumericsFolder("llama-tiny"));
  spec.enable_prefix_caching = true;
  const std::unique_ptr<Engine> engine = Registry().Boot(spec);
  std::vector<TokenId> prompt;
  for (TokenId i = 0; i < 40; ++i) prompt.push_back(3 + i);
  WaitingSink sink;
  engine->Submit({MakeRequest(0, prompt, 8)}, sink);
  sink.WaitFor(1);
  ASSERT_NE(engine->step_probe(), nullptr);
  const StepShape shape = {.prefills = {{.tokens = 30, .past = 5}}, .decode_contexts = {17, 40}};
  EXPECT_GT(engine->step_probe()->RunStep(shape), 0);
  EXPECT_THROW(engine->step_probe()->RunStep({}), Error);
  const Counters before = engine->Sample();
  EXPECT_EQ(before.kv_blocks_used, 0);
  engine->Submit({MakeRequest(1, prompt, 8)}, sink);
  sink.WaitFor(2);
  EXPECT_EQ(engine->Sample().prompt_tokens_cached - before.prompt_tokens_cached, 32);
  EXPECT_EQ(sink.ids(0), sink.ids(1));
}

TEST(TorchEngine, SeededSamplingDoesNotDependOnTheBatch) {
  const SamplingParams sampling = {.temperature = 0.8, .top_k = 50, .top_p = 0.95, .seed = 11};
  const EngineSpec spec = Spec(NumericsFolder("qwen3-tiny"));
  const Request request = MakeRequest(0, {5, 6, 7}, 24, sampling);
  std::vector<Request> crowd = {request};
  for (RequestId id = 1; id < 6; ++id)
    crowd.push_back(MakeRequest(id, {5, 6, 7}, 24, {.temperature = 1, .seed = 3}));
  const auto alone = Serve(spec, {request});
  const auto together = Serve(spec, crowd);
  EXPECT_EQ(alone[0], together[0]);
  EXPECT_EQ(together[1], together[2]);
  EXPECT_NE(together[0], together[1]);
}

TEST(TorchEngine, DummyWeightsFollowTheSeed) {
  EngineSpec spec = Spec(NumericsFolder("llama-tiny"));
  spec.load_format = "dummy";
  const std::vector<Request> requests = {MakeRequest(0, {1, 2, 3}, 32)};
  const auto first = Serve(spec, requests);
  EXPECT_EQ(first, Serve(spec, requests));
  spec.seed = 43;
  EXPECT_NE(first, Serve(spec, requests));
}

TEST(TorchEngine, FactsSayWhatWasResolved) {
  EngineSpec spec = Spec(NumericsFolder("llama-tiny"));
  spec.dtype = "auto";
  const std::unique_ptr<Engine> engine = Registry().Boot(spec);
  const Facts& facts = engine->facts();
  EXPECT_EQ(facts.engine, "torch");
  EXPECT_EQ(facts.dtype, "float32");
  EXPECT_EQ(facts.vocab_size, 256);
  EXPECT_EQ(facts.max_model_len, 512);
  // A block: keys and values, 2 layers, 16 tokens, 2 heads of 16, 4 bytes.
  EXPECT_EQ(facts.kv_capacity.TotalBlocks(), (4 << 20) / (2 * 2 * 16 * 2 * 16 * 4));
  const Json resolved = ParseJson(facts.resolved_config_json, "resolved");
  EXPECT_EQ(resolved.at("load_config").at("load_format"), "safetensors");
  EXPECT_TRUE(resolved.at("model_config").at("enforce_eager").get<bool>());
  EXPECT_TRUE(ParseJson(facts.hardware_json, "hardware").contains("instruction_set"));
  EXPECT_EQ(ParseJson(facts.execution_json, "execution").at("graph_policy"), "none");
}

TEST(TorchEngine, RequestsThatCanNeverBeServedAreRefusedAndTheRestGoesOn) {
  WaitingSink sink;
  const std::unique_ptr<Engine> engine = Registry().Boot(Spec(NumericsFolder("llama-tiny")));
  engine->Submit({MakeRequest(0, {1, 256}, 4), MakeRequest(1, {1, -1}, 4),
                  MakeRequest(2, std::vector<TokenId>(510, 1), 4), MakeRequest(3, {1, 2}, 4)},
                 sink);
  sink.WaitFor(4);
  for (RequestId id = 0; id < 3; ++id) EXPECT_EQ(sink.reason(id), FinishReason::kRefused) << sink.text(id);
  EXPECT_THAT(sink.text(0), HasSubstr("256"));
  EXPECT_THAT(sink.text(2), HasSubstr("512"));
  EXPECT_EQ(sink.reason(3), FinishReason::kLength);
}

TEST(TorchEngine, BadModelFoldersAreNamed) {
  EXPECT_THAT(BootRefusal(Spec("/no/such/model")), HasSubstr("/no/such/model"));
  const ModelFolder folder;
  folder.Write("config.json", R"({"architectures":["GPT2LMHeadModel"]})");
  EXPECT_THAT(BootRefusal(Spec(folder.path())), HasSubstr("LlamaForCausalLM"));
  const ModelFolder no_weights;
  no_weights.Write("config.json", R"({"architectures":["LlamaForCausalLM"],"hidden_size":64,"vocab_size":256,
      "intermediate_size":160,"num_hidden_layers":2,"num_attention_heads":4,"max_position_embeddings":64})");
  EXPECT_THAT(BootRefusal(Spec(no_weights.path())), HasSubstr("--load-format dummy"));
  no_weights.Write("model.safetensors", std::string("\xff\xff\x00\x00\x00\x00\x00\x00{}", 10));
  EXPECT_THAT(BootRefusal(Spec(no_weights.path())), HasSubstr("header"));
}

TEST(TorchEngine, WhatItCannotHonourIsRefusedBeforeAnythingIsRead) {
  EngineSpec spec = Spec("/no/such/model");
  spec.tensor_parallel_size = 2;
  EXPECT_THAT(BootRefusal(spec), HasSubstr("--tensor-parallel-size"));
}

TEST(TorchEngine, CacheBeyondTheMemoryIsRefusedWithTheNumbers) {
  EngineSpec spec = Spec(NumericsFolder("llama-tiny"));
  spec.kv_cache_memory_bytes = std::int64_t{1} << 42;
  EXPECT_THAT(BootRefusal(spec, ExitCode::kEngineFailed), HasSubstr("4096.00 GiB for the KV cache"));
}

}  // namespace
}  // namespace plumbline
