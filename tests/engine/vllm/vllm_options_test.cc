#include "engine/vllm/vllm_options.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace plumbline {
namespace {

TEST(VllmOptions, SpeaksVllmsNames) {
  EngineSpec spec;
  spec.model = "org/m";
  spec.tensor_parallel_size = 2;
  spec.kv_cache_memory_bytes = 1000;
  spec.enforce_eager = true;
  const Json arguments = ParseVllmSpec(spec).engine_arguments;
  EXPECT_EQ(arguments["model"], "org/m");
  EXPECT_EQ(arguments["tensor_parallel_size"], 2);
  EXPECT_EQ(arguments["kv_cache_memory_bytes"], 1000);
  EXPECT_EQ(arguments["enforce_eager"], true);
  EXPECT_EQ(arguments["dtype"], "bfloat16");
  EXPECT_EQ(arguments["max_num_seqs"], 128);
  EXPECT_FALSE(arguments.contains("max_model_len")) << "left to the model";
  EXPECT_FALSE(arguments.contains("enable_prefix_caching")) << "left to vLLM's default";
  EXPECT_EQ(arguments["compilation_config"]["pass_config"]["fuse_allreduce_rms"], false);
  EXPECT_EQ(arguments["compilation_config"]["pass_config"]["fuse_gemm_comms"], false);
}

TEST(VllmOptions, OtherKeysBecomeArguments) {
  EngineSpec spec;
  spec.extra = {{"gpu-memory-utilization", "0.5"},
                {"distributed_executor_backend", "mp"},
                {"token-times", "true"},
                {"compilation-config", R"({"cudagraph_mode": "NONE"})"}};
  const VllmOptions options = ParseVllmSpec(spec);
  EXPECT_EQ(options.engine_arguments["gpu_memory_utilization"], 0.5);
  EXPECT_EQ(options.engine_arguments["distributed_executor_backend"], "mp");
  EXPECT_TRUE(options.token_times);
  EXPECT_EQ(options.engine_arguments["compilation_config"]["cudagraph_mode"], "NONE");
  EXPECT_EQ(options.engine_arguments["compilation_config"]["pass_config"]["fuse_allreduce_rms"], false);
}

TEST(VllmOptions, BadKeysAreNamed) {
  for (const auto& [key, value] : std::map<std::string, std::string>{{"token-times", "1"},
                                                                     {"boot-timeout-s", "0"},
                                                                     {"boot-timeout-s ", "x"},
                                                                     {"max-num-seqs", "3"},
                                                                     {"compilation-config", "[]"}}) {
    EngineSpec spec;
    spec.extra = {{key == "boot-timeout-s " ? "boot-timeout-s" : key, value}};
    try {
      ParseVllmSpec(spec);
      FAIL() << key << "=" << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadInput);
      EXPECT_NE(std::string(error.what()).find("--engine-arg"), std::string::npos) << error.what();
    }
  }
}

TEST(RequireVllm, SaysHowToGetIt) {
  for (const char* python : {"no-such-python", "/bin/false"}) {
    try {
      RequireVllm(python);
      FAIL() << python;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kSkipped);
      EXPECT_NE(std::string(error.what()).find("PLUMBLINE_PYTHON"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace plumbline
