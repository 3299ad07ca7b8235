#include "tools/engine_flags.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace plumbline {
namespace {

// Empty text when the words parse; else the parser's message.
std::string Parse(std::vector<std::string> words, EngineSpec& spec) {
  CLI::App app;
  EngineFlags flags(app);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  spec = flags.Spec();
  return "";
}

TEST(EngineFlags, DefaultsAreTheReferenceHarnesss) {
  EngineSpec spec;
  ASSERT_EQ(Parse({"--model", "m"}, spec), "");
  EXPECT_EQ(spec.kind, "torch");
  EXPECT_EQ(spec.tensor_parallel_size, 1);
  EXPECT_EQ(spec.data_parallel_size, 1);
  EXPECT_EQ(spec.max_num_seqs, 128);
  EXPECT_EQ(spec.max_num_batched_tokens, 2048);
  EXPECT_FALSE(spec.max_model_len.has_value());
  EXPECT_EQ(spec.dtype, "bfloat16");
  EXPECT_EQ(spec.kv_cache_dtype, "auto");
  EXPECT_FALSE(spec.kv_cache_memory_bytes.has_value());
  EXPECT_EQ(spec.seed, 42);
  EXPECT_EQ(spec.load_format, "auto");
  EXPECT_FALSE(spec.skip_tokenizer_init || spec.enforce_eager || spec.record_gate_stats ||
               spec.enable_expert_parallel || spec.disable_custom_all_reduce);
}

TEST(EngineFlags, EveryFlagReachesTheSpec) {
  EngineSpec spec;
  ASSERT_EQ(Parse({"--engine",
                   "scripted",
                   "--model=m",
                   "--tensor-parallel-size",
                   "2",
                   "--data-parallel-size",
                   "3",
                   "--enable-expert-parallel",
                   "--disable-custom-all-reduce",
                   "--max-num-seqs",
                   "4",
                   "--max-num-batched-tokens",
                   "5",
                   "--max-model-len",
                   "6",
                   "--dtype",
                   "float32",
                   "--kv-cache-dtype",
                   "fp8",
                   "--kv-cache-memory-bytes",
                   "7",
                   "--block-size",
                   "8",
                   "--seed",
                   "-9",
                   "--load-format",
                   "dummy",
                   "--skip-tokenizer-init",
                   "--enforce-eager",
                   "--record-gate-stats",
                   "--engine-arg",
                   "a=b=c",
                   "--engine-arg",
                   "d="},
                  spec),
            "");
  EXPECT_EQ(spec.kind, "scripted");
  EXPECT_EQ(spec.model, "m");
  EXPECT_EQ(spec.tensor_parallel_size, 2);
  EXPECT_EQ(spec.data_parallel_size, 3);
  EXPECT_TRUE(spec.enable_expert_parallel && spec.disable_custom_all_reduce);
  EXPECT_EQ(spec.max_num_seqs, 4);
  EXPECT_EQ(spec.max_num_batched_tokens, 5);
  EXPECT_EQ(spec.max_model_len, 6);
  EXPECT_EQ(spec.dtype, "float32");
  EXPECT_EQ(spec.kv_cache_dtype, "fp8");
  EXPECT_EQ(spec.kv_cache_memory_bytes, 7);
  EXPECT_EQ(spec.block_size, 8);
  EXPECT_EQ(spec.seed, -9);
  EXPECT_EQ(spec.load_format, "dummy");
  EXPECT_TRUE(spec.skip_tokenizer_init && spec.enforce_eager && spec.record_gate_stats);
  EXPECT_EQ(spec.extra, (std::map<std::string, std::string>{{"a", "b=c"}, {"d", ""}}));
}

TEST(EngineFlags, ValuesOutOfRangeNameTheFlagAndTheValue) {
  for (const char* flag :
       {"--tensor-parallel-size", "--data-parallel-size", "--max-num-seqs", "--max-num-batched-tokens",
        "--max-model-len", "--kv-cache-memory-bytes", "--block-size"}) {
    for (const char* value : {"0", "-1", "1.5", "x", "99999999999999999999", "nan", ""}) {
      EngineSpec spec;
      const std::string message = Parse({"--model", "m", std::string(flag) + "=" + value}, spec);
      EXPECT_NE(message.find(flag), std::string::npos) << flag << "=" << value << ": " << message;
    }
  }
}

TEST(EngineFlags, ModelIsRequired) {
  EngineSpec spec;
  EXPECT_NE(Parse({}, spec).find("--model is required"), std::string::npos);
}

TEST(EngineFlags, EngineArgMustBeKeyAndValueOnce) {
  EngineSpec spec;
  EXPECT_THROW(Parse({"--model", "m", "--engine-arg", "a"}, spec), Error);
  EXPECT_THROW(Parse({"--model", "m", "--engine-arg", "=a"}, spec), Error);
  EXPECT_THROW(Parse({"--model", "m", "--engine-arg", "a=1", "--engine-arg", "a=2"}, spec), Error);
}

}  // namespace
}  // namespace plumbline
