// `plumb simulate` from the outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/files.h"
#include "fixtures/run/run_files.h"
#include "fixtures/run/sim_csv.h"
#include "tests/fakes/golden_pack.h"
#include "tests/fakes/run_command.h"
#include "tests/fakes/temp_folder.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

constexpr const char* kCluster = R"({"num_nodes": 1, "link_bw": 16, "link_latency": 1000, "nodes": [
  {"num_instances": 1, "cpu_mem": {"mem_size": 64, "mem_bw": 50, "mem_latency": 0}, "instances": [
    {"model_name": "tiny", "hardware": "BOX", "tp_size": 1, "pd_type": null,
     "npu_mem": {"mem_size": 1, "mem_bw": 100, "mem_latency": 0}}]}]})";

class SimulateCommandLine : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("configs/model/tiny.json",
                  R"({"model_type": "tiny", "hidden_size": 64, "num_hidden_layers": 2,
                      "num_attention_heads": 4, "vocab_size": 128, "intermediate_size": 128,
                      "max_position_embeddings": 4096})");
    folder_.Write("profiler/models/tiny.yaml", "sequence: {head: [x]}\ncatalog: {dense: {x: {}}}\n");
    const std::string bundle = "profiler/perf/BOX/tiny/bf16/";
    folder_.Write(bundle + "meta.yaml", "skew_fit: {enabled: false}\n");
    folder_.Write(bundle + "tp1/dense.csv", "layer,tokens,time_us\nx,1,1\nx,2,2\n");
    folder_.Write(bundle + "tp1/per_sequence.csv", "layer,sequences,time_us\nx,1,1\n");
    folder_.Write(bundle + "tp1/attention.csv",
                  "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,16,4\n");
    folder_.Write("configs/cluster/c.json", kCluster);
    folder_.Write(
        "w.jsonl",
        "{\"input_toks\": 3, \"output_toks\": 2, \"arrival_time_ns\": 1000}\n"
        "{\"session_id\": \"s\", \"arrival_time_ns\": 9000, \"sub_requests\": [{\"input_toks\": 2, "
        "\"output_toks\": 1, \"tool_duration_ns\": 500}, {\"input_toks\": 4, \"output_toks\": 1}]}\n");
  }

  CommandOutcome Simulate(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {PLUMBLINE_BINARY_DIR "/bin/plumb",
                                        "simulate",
                                        "--cluster-config",
                                        folder_ / "configs/cluster/c.json",
                                        "--dataset",
                                        folder_ / "w.jsonl",
                                        "--output",
                                        folder_ / "sim.csv"};
    command.insert(command.end(), more.begin(), more.end());
    return RunCommand(command);
  }

  TempFolder folder_;
};

TEST_F(SimulateCommandLine, WritesTheRequestsFiguresAndTheLog) {
  const CommandOutcome outcome = Simulate();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // 3 us for the prompt, 1 us for the token; the session's turns by 2 us and, after the tool, 4 us.
  EXPECT_EQ(
      ReadFile(folder_ / "sim.csv"),
      "instance id,request id,model,input,output,arrival,end_time,latency,queuing_delay,TTFT,TPOT,ITL\r\n"
      "0,0,tiny,3,2,1000,5000,4000,0,3000,1000,[1000]\r\n"
      "0,1,tiny,2,1,9000,1007000,998000,996000,998000,0,[]\r\n"
      "0,2,tiny,4,1,1007500,2011000,1003500,999500,1003500,0,[]\r\n");
  EXPECT_THAT(outcome.out, HasSubstr("KV Cache Initialization"));
  EXPECT_THAT(outcome.out,
              HasSubstr("Total requests:                                                     3\n"));
}

TEST_F(SimulateCommandLine, ARunOnTheSimulatedEngineReplaysSessionsAtTheSameTimes) {
  folder_.Write(
      "w.jsonl",
      "{\"input_toks\": 3, \"output_toks\": 2, \"arrival_time_ns\": 1000, \"input_tok_ids\": [1, 2, 3]}\n"
      "{\"session_id\": \"s\", \"arrival_time_ns\": 9000, \"sub_requests\": ["
      "{\"input_toks\": 2, \"output_toks\": 1, \"tool_duration_ns\": 500, \"input_tok_ids\": [4, 5]}, "
      "{\"input_toks\": 4, \"output_toks\": 3, \"tool_duration_ns\": 0, \"input_tok_ids\": [4, 5, 6, 7]}, "
      "{\"input_toks\": 2, \"output_toks\": 1, \"input_tok_ids\": [8, 9]}]}\n");
  ASSERT_EQ(Simulate().code, 0);
  const CommandOutcome outcome =
      RunCommand({PLUMBLINE_BINARY_DIR "/bin/plumb", "run", "--engine", "simulated", "--model", "tiny",
                  "--engine-arg", "cluster-config=" + folder_ / "configs/cluster/c.json", "--dataset",
                  folder_ / "w.jsonl", "--output-dir", folder_ / "run"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  SimRecord simulation;
  ReadSimCsv(folder_ / "sim.csv", {}, simulation);
  const std::vector<SimRequest>& simulated = simulation.requests;
  const std::vector<RequestRecord> served = ReadRun(folder_ / "run").requests;
  ASSERT_EQ(served.size(), 4u);
  ASSERT_EQ(simulated.size(), 4u);
  for (std::size_t i = 0; i < served.size(); ++i) {
    EXPECT_EQ(served[i].row, simulated[i].request_id);
    EXPECT_DOUBLE_EQ(*served[i].due_ts * 1e9, static_cast<double>(simulated[i].arrival_ns)) << i;
    EXPECT_DOUBLE_EQ(*served[i].last_token_ts * 1e9, static_cast<double>(simulated[i].end_time_ns)) << i;
  }
  EXPECT_EQ(served[3].session_id, "s");
  EXPECT_EQ(served[3].turn, 2);
}

TEST_F(SimulateCommandLine, LogGoesToAFileWhereAsked) {
  const CommandOutcome outcome = Simulate({"--log", folder_ / "sim.log"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(ReadFile(folder_ / "sim.log"), HasSubstr("Max num seqs               : 128"));
}

TEST_F(SimulateCommandLine, SameInputsGiveTheSameBytes) {
  ASSERT_EQ(Simulate().code, 0);
  const std::string first = ReadFile(folder_ / "sim.csv");
  ASSERT_EQ(Simulate().code, 0);
  EXPECT_EQ(ReadFile(folder_ / "sim.csv"), first);
}

TEST_F(SimulateCommandLine, WhatIsNotSimulatedIsRefusedByName) {
  const std::vector<std::vector<std::string>> refused = {
      {"--skip-prefill"}, {"--enable-local-offloading"}, {"--request-routing-policy", "CUSTOM"}};
  for (const std::vector<std::string>& flags : refused) {
    const CommandOutcome outcome = Simulate(flags);
    EXPECT_EQ(outcome.code, 1) << flags[0];
    EXPECT_THAT(outcome.err, HasSubstr(flags[0] + ": is not simulated"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "sim.csv"));
  }
  EXPECT_EQ(Simulate({"--gate-stats", "g.json"}).code, 1) << "only CUSTOM reads it";
  EXPECT_EQ(Simulate({"--expert-routing-policy", "RAND", "--no-enable-block-copy"}).code, 1);
}

TEST_F(SimulateCommandLine, WhatNoStoredOutputShowsIsMarkedInTheLog) {
  for (const std::string policy : {"RR", "RAND"}) {
    const CommandOutcome outcome = Simulate({"--request-routing-policy", policy});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("unverified: request routing " + policy));
  }
  EXPECT_THAT(Simulate().out, testing::Not(HasSubstr("unverified")));
}

TEST_F(SimulateCommandLine, BadInputIsExplained) {
  EXPECT_EQ(Simulate({"--max-num-seqs", "0"}).code, 1);
  EXPECT_EQ(Simulate({"--block-size", "-3"}).code, 1);
  EXPECT_EQ(Simulate({"--npu-memory-utilization", "7"}).code, 1);
  EXPECT_EQ(Simulate({"--dtype", "int3"}).code, 1);
  folder_.Write("w.jsonl", "{\"input_toks\": 3000000, \"output_toks\": 2, \"arrival_time_ns\": 1000}\n");
  const CommandOutcome too_long = Simulate();
  EXPECT_EQ(too_long.code, 1);
  EXPECT_THAT(too_long.err, HasSubstr("request 0: 3000000 prompt + 2 output tokens can never fit"));
  folder_.Write("w.jsonl", "");
  EXPECT_EQ(Simulate().code, 1);
}

TEST_F(SimulateCommandLine, AnOutputThatCannotBeWrittenIsExitCode4) {
  EXPECT_EQ(Simulate({"--log", folder_ / "no/such/folder/sim.log"}).code, 4);
}

TEST(SimulateReference, ReproducesAStoredOutput) {
  const std::string pack = GoldenPack();
  if (pack.empty()) GTEST_SKIP() << "no checkout of the reference simulator: set PLUMBLINE_GOLDEN_PATH";
  const TempFolder folder;
  const CommandOutcome outcome = RunCommand(
      {PLUMBLINE_BINARY_DIR "/bin/plumb", "simulate", "--cluster-config",
       pack + "/configs/cluster/single_node_multi_instance.json", "--dataset",
       pack + "/workloads/example_trace.jsonl", "--output", folder / "sim.csv", "--dtype", "bfloat16",
       "--enable-prefix-caching", "--enable-prefix-sharing", "--prefix-storage", "CPU"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(ReadFile(folder / "sim.csv") ==
              ReadFile(pack + "/outputs/example_prefix_cpu_mem_pool_run.csv"));
}

}  // namespace
}  // namespace plumbline
