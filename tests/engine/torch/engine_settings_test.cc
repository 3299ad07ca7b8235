#include "engine/torch/engine_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <functional>

#include "engine/base/error.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

EngineSpec Spec() {
  EngineSpec spec;
  spec.model = "model";
  return spec;
}

ModelConfig Config() {
  ModelConfig config;
  config.vocab_size = 256;
  config.hidden_size = 64;
  config.intermediate_size = 160;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 16;
  config.max_position_embeddings = 512;
  return config;
}

std::string Refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    return error.what();
  }
  return "accepted";
}

std::string SpecRefusal(const std::function<void(EngineSpec&)>& change) {
  EngineSpec spec = Spec();
  change(spec);
  return Refusal([&] { CheckTorchSpec(spec); });
}

TEST(CheckTorchSpec, FlagsAtTheirDefaultsAndThoseThatAreTrueAnyway) {
  EXPECT_EQ(SpecRefusal([](EngineSpec&) {}), "accepted");
  EXPECT_EQ(SpecRefusal([](EngineSpec& spec) {
              spec.enforce_eager = spec.skip_tokenizer_init = spec.disable_custom_all_reduce = true;
            }),
            "accepted");
}

TEST(CheckTorchSpec, NamesWhatItCannotHonour) {
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.tensor_parallel_size = 2; }),
              HasSubstr("--tensor-parallel-size"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.data_parallel_size = 2; }),
              HasSubstr("--data-parallel-size"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.enable_expert_parallel = true; }),
              HasSubstr("--enable-expert-parallel"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.record_gate_stats = true; }),
              HasSubstr("--record-gate-stats"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.kv_cache_dtype = "fp8"; }),
              HasSubstr("--kv-cache-dtype"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.dtype = "float16"; }),
              HasSubstr("accepted: auto, float32, bfloat16"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.load_format = "gguf"; }), HasSubstr("--load-format"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.block_size = 24; }), HasSubstr("--block-size"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.block_size = 0; }), HasSubstr("--block-size"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.max_num_seqs = 0; }), HasSubstr("--max-num-seqs"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.kv_cache_memory_bytes = -1; }),
              HasSubstr("--kv-cache-memory-bytes"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.model = ""; }), HasSubstr("--model"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.extra["speed"] = "high"; }), HasSubstr("threads"));
  EXPECT_THAT(SpecRefusal([](EngineSpec& spec) { spec.extra["threads"] = "2x"; }), HasSubstr("threads"));
  EXPECT_EQ(SpecRefusal([](EngineSpec& spec) { spec.extra["threads"] = "3"; }), "accepted");
}

TEST(ResolveSettings, CapacityFollowsFromBytes) {
  // A block: keys and values, 2 layers, 16 tokens, 2 heads of 16, 2 bytes.
  const std::int64_t block_bytes = 2 * 2 * 16 * 2 * 16 * 2;
  EXPECT_EQ(ResolveSettings(Spec(), Config()).num_blocks, kDefaultKvCacheBytes / block_bytes);
  EngineSpec spec = Spec();
  spec.kv_cache_memory_bytes = 10 * block_bytes + 1;
  EXPECT_EQ(ResolveSettings(spec, Config()).num_blocks, 10);
  spec.dtype = "float32";
  EXPECT_EQ(ResolveSettings(spec, Config()).num_blocks, 5);
  spec.kv_cache_memory_bytes = block_bytes;
  EXPECT_THAT(Refusal([&] { ResolveSettings(spec, Config()); }),
              HasSubstr("--kv-cache-memory-bytes: makes 0"));
}

TEST(ResolveSettings, DtypeAutoIsTheCheckpoints) {
  EngineSpec spec = Spec();
  spec.dtype = "auto";
  ModelConfig config = Config();
  EXPECT_EQ(ResolveSettings(spec, config).dtype_name, "float32");
  config.dtype = "bfloat16";
  EXPECT_EQ(ResolveSettings(spec, config).dtype, cpu::Dtype::kBFloat16);
  config.dtype = "float16";
  EXPECT_THAT(Refusal([&] { ResolveSettings(spec, config); }), HasSubstr("float16"));
}

TEST(ResolveSettings, CacheHasTheDtypeOfTheModel) {
  EngineSpec spec = Spec();
  spec.kv_cache_dtype = "bfloat16";
  EXPECT_EQ(ResolveSettings(spec, Config()).dtype_name, "bfloat16");
  spec.kv_cache_dtype = "float32";
  EXPECT_THAT(Refusal([&] { ResolveSettings(spec, Config()); }), HasSubstr("--kv-cache-dtype"));
}

TEST(ResolveSettings, LengthIsAtMostTheModels) {
  EngineSpec spec = Spec();
  EXPECT_EQ(ResolveSettings(spec, Config()).max_model_len, 512);
  spec.max_model_len = 100;
  EXPECT_EQ(ResolveSettings(spec, Config()).max_model_len, 100);
  spec.max_model_len = 513;
  EXPECT_THAT(Refusal([&] { ResolveSettings(spec, Config()); }), HasSubstr("--max-model-len"));
}

TEST(ResolveSettings, ShapesThatTheKernelsLackAreNamed) {
  ModelConfig config = Config();
  config.head_dim = 24;
  EXPECT_THAT(Refusal([&] { ResolveSettings(Spec(), config); }), HasSubstr("head_dim"));
  config = Config();
  config.intermediate_size = 70000;
  EXPECT_THAT(Refusal([&] { ResolveSettings(Spec(), config); }), HasSubstr("70000"));
}

}  // namespace
}  // namespace plumbline
