// What `plumb run --engine torch` says of models and flags that it cannot use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/files.h"
#include "tests/fakes/run_command.h"
#include "tests/fakes/temp_folder.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

class TorchModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("workload.jsonl",
                  R"({"input_toks":1,"output_toks":1,"arrival_time_ns":0,"input_tok_ids":[1]})"
                  "\n");
    const CommandOutcome probe = Run("/nosuch");
    if (probe.err.find("is not an engine of this build") != std::string::npos) {
      GTEST_SKIP() << "this build has no torch engine";
    }
  }

  CommandOutcome Run(const std::string& model, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {PLUMBLINE_BINARY_DIR "/bin/plumb",
                                        "run",
                                        "--engine",
                                        "torch",
                                        "--model",
                                        model,
                                        "--dataset",
                                        folder_ / "workload.jsonl",
                                        "--output-dir",
                                        folder_ / "run",
                                        "--load-format",
                                        "dummy"};
    command.insert(command.end(), more.begin(), more.end());
    return RunCommand(command);
  }

  TempFolder folder_;
};

TEST_F(TorchModel, FoldersThatHoldNoModelAreNamed) {
  folder_.Write("empty/other.txt", "");
  folder_.Write("binary/config.json", std::string(500, '\x01'));
  folder_.Write("truncated/config.json", R"({"architectures": ["Llama)");
  folder_.Write("folder/config.json/file", "");
  for (const char* model : {"nosuch", "empty", "binary", "truncated", "folder"}) {
    const CommandOutcome outcome = Run(folder_ / model);
    EXPECT_EQ(outcome.code, 1) << model << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(folder_ / model));
  }
}

TEST_F(TorchModel, UnknownArchitectureNamesTheKnownOnes) {
  folder_.Write("odd/config.json", R"({"architectures": ["OddForCausalLM"], "model_type": "odd"})");
  const CommandOutcome outcome = Run(folder_ / "odd");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("OddForCausalLM"));
  EXPECT_THAT(outcome.err, HasSubstr("LlamaForCausalLM"));
}

TEST_F(TorchModel, WhatItCannotHonourIsNamed) {
  const std::string model = PLUMBLINE_SOURCE_DIR "/suites/models/llama-29m";
  const std::vector<std::vector<std::string>> refused = {{"--tensor-parallel-size", "2"},
                                                         {"--data-parallel-size", "2"},
                                                         {"--kv-cache-dtype", "fp8"},
                                                         {"--dtype", "int3"},
                                                         {"--engine-arg", "nosuch=1"}};
  for (const std::vector<std::string>& flags : refused) {
    const CommandOutcome outcome = Run(model, flags);
    EXPECT_EQ(outcome.code, 1) << flags[0] << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(flags[0] == "--engine-arg" ? "nosuch" : flags[0]));
  }
}

}  // namespace
}  // namespace plumbline
