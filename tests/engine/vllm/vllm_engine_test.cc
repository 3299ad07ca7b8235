// The worker and its engine against a stand-in for vLLM (tests/fakes/python): every path but vLLM's own.
#include "engine/vllm/vllm_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>

#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/process/child.h"
#include "tests/fakes/temp_folder.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

struct Outcome {
  std::vector<EventKind> kinds;
  std::vector<TimeNs> times;
  std::vector<TokenId> tokens;
  FinishReason reason = FinishReason::kNone;
  std::string text;
};

class Sink final : public EventSink {
 public:
  void OnEvents(std::span<const Event> events) override {
    const std::scoped_lock lock(mutex_);
    for (const Event& event : events) {
      Outcome& outcome = outcomes_[event.id];
      outcome.kinds.push_back(event.kind);
      outcome.times.push_back(event.time_ns);
      if (event.kind == EventKind::kTokens) {
        outcome.tokens.insert(outcome.tokens.end(), event.token_ids, event.token_ids + event.count);
      }
      if (event.kind != EventKind::kFinished) continue;
      outcome.reason = event.reason;
      outcome.text = event.text;
      ++finished_;
      changed_.notify_all();
    }
  }

  std::map<RequestId, Outcome> Await(std::size_t finished) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(2), [&] { return finished_ >= finished; });
    return outcomes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestId, Outcome> outcomes_;
  std::size_t finished_ = 0;
};

class VllmEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!FindProgram("python3")) GTEST_SKIP() << "there is no python3 here";
  }

  // An interpreter that finds the stand-in.
  VllmOptions Options(const std::string& behaviour = "") {
    const std::string python = folder_.Write(
        "python" + behaviour, "#!/bin/sh\nPYTHONDONTWRITEBYTECODE=1 FAKE_VLLM=" + behaviour + " PYTHONPATH=" +
                                  PLUMBLINE_SOURCE_DIR "/tests/fakes/python exec python3 \"$@\"\n");
    ::chmod(python.c_str(), 0755);
    EngineSpec spec;
    spec.model = "org/m";
    spec.dtype = "float32";
    spec.python = python;
    spec.log_folder = folder_.path();
    return ParseVllmSpec(spec);
  }

  static std::vector<Request> Requests(std::int64_t count, std::int64_t first = 0) {
    std::vector<Request> requests(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      Request& request = requests[static_cast<std::size_t>(i)];
      request.id = first + i;
      request.prompt_token_ids = {1, 2, static_cast<TokenId>(100 + i)};
      request.input_toks = 3;
      request.output_toks = 4;
    }
    return requests;
  }

  Error BootError(const VllmOptions& options) {
    try {
      BootVllm(options);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "it booted";
    return {ExitCode::kPass, ""};
  }

  TempFolder folder_;
};

TEST_F(VllmEngineTest, ServesWithVllmsOwnTimesAndFacts) {
  const std::unique_ptr<Engine> engine = BootVllm(Options());
  const Facts& facts = engine->facts();
  EXPECT_EQ(facts.engine_version, "9.9.9+fake");
  EXPECT_EQ(facts.vocab_size, 1000);
  ASSERT_TRUE(facts.kv_capacity.complete()) << facts.kv_capacity.unknown_reason;
  EXPECT_EQ(facts.kv_capacity.TotalBlocks(), 64);
  EXPECT_THAT(facts.execution_json, HasSubstr("\"complete\""));
  EXPECT_THAT(facts.hardware_json, HasSubstr("VLLM_ALLREDUCE_USE_SYMM_MEM"));
  EXPECT_THAT(facts.engine_kwargs_json, HasSubstr("fuse_allreduce_rms"));
  EXPECT_THAT(facts.warnings, testing::ElementsAre(HasSubstr("fuse_gemm_comms")));

  Sink sink;
  const TimeNs before_ns = MonotonicClock().NowNs();
  engine->Submit(Requests(3), sink);
  const std::map<RequestId, Outcome> outcomes = sink.Await(3);
  ASSERT_EQ(outcomes.size(), 3u);
  const Outcome& last = outcomes.at(2);
  EXPECT_EQ(last.reason, FinishReason::kLength);
  EXPECT_EQ(last.tokens, (std::vector<TokenId>{102, 103, 104, 105}));
  EXPECT_EQ(last.kinds, (std::vector<EventKind>{EventKind::kQueued, EventKind::kScheduled, EventKind::kTokens,
                                                EventKind::kTokens, EventKind::kFinished}));
  EXPECT_TRUE(std::is_sorted(last.times.begin(), last.times.end()));
  EXPECT_GE(last.times.front(), before_ns) << "one clock on both sides";
  EXPECT_TRUE(engine->ResetPrefixCache());
  EXPECT_EQ(engine->Sample().generation_tokens, 12);
  EXPECT_EQ(engine->Sample().prompt_tokens, 9);
  EXPECT_THAT(engine->EndFactsJson(), HasSubstr("\"count\": 3"));
  engine->Shutdown();
  EXPECT_THROW(engine->Sample(), Error);
  EXPECT_THAT(ReadFile(folder_ / "engine.log"), HasSubstr("the fake engine shuts down"));
}

TEST_F(VllmEngineTest, TokenTimesComeOneByOneWhereAskedFor) {
  VllmOptions options = Options();
  options.token_times = true;
  const std::unique_ptr<Engine> engine = BootVllm(options);
  Sink sink;
  engine->Submit(Requests(1), sink);
  const Outcome outcome = sink.Await(1).at(0);
  EXPECT_EQ(std::count(outcome.kinds.begin(), outcome.kinds.end(), EventKind::kTokens), 4);
  EXPECT_EQ(outcome.tokens, (std::vector<TokenId>{100, 101, 102, 103}));
}

TEST_F(VllmEngineTest, WhatWouldKillVllmIsRefused) {
  const std::unique_ptr<Engine> engine = BootVllm(Options());
  Sink sink;
  std::vector<Request> requests = Requests(2);
  requests[0].prompt_token_ids[0] = 1000;
  engine->Submit(std::move(requests), sink);
  const std::map<RequestId, Outcome> outcomes = sink.Await(2);
  EXPECT_EQ(outcomes.at(0).reason, FinishReason::kRefused);
  EXPECT_EQ(outcomes.at(1).reason, FinishReason::kLength);
}

TEST_F(VllmEngineTest, ADeadEngineFinishesAllInFlight) {
  const std::unique_ptr<Engine> engine = BootVllm(Options("die=2"));
  Sink sink;
  engine->Submit(Requests(3), sink);
  const std::map<RequestId, Outcome> outcomes = sink.Await(3);
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(outcomes.at(0).reason, FinishReason::kLength) << "finished work is kept";
  EXPECT_EQ(outcomes.at(1).reason, FinishReason::kError);
  EXPECT_EQ(outcomes.at(2).reason, FinishReason::kError);
  engine->Shutdown();
  EXPECT_THROW(engine->Sample(), Error);
}

TEST_F(VllmEngineTest, AProcessThatEndsIsNoticedWithItsLastWords) {
  const std::unique_ptr<Engine> engine = BootVllm(Options("exit=1"));
  Sink sink;
  engine->Submit(Requests(2), sink);
  const std::map<RequestId, Outcome> outcomes = sink.Await(2);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes.at(0).reason, FinishReason::kError);
  EXPECT_THAT(outcomes.at(0).text, HasSubstr("exit code 3"));
  EXPECT_THAT(outcomes.at(0).text, HasSubstr("last words of the fake engine"));
  EXPECT_THROW(engine->Submit(Requests(1, 9), sink), Error);
}

TEST_F(VllmEngineTest, CancelAndShutdownEndWhatHangs) {
  const std::unique_ptr<Engine> engine = BootVllm(Options("hang=1"));
  Sink sink;
  engine->Submit(Requests(2), sink);
  engine->Cancel(0);
  EXPECT_EQ(sink.Await(1).at(0).reason, FinishReason::kCancelled);
  engine->Shutdown();
  EXPECT_EQ(sink.Await(2).at(1).reason, FinishReason::kCancelled);
}

TEST_F(VllmEngineTest, BootErrorsSayWhose) {
  const Error failed = BootError(Options("fail-boot"));
  EXPECT_EQ(failed.code(), ExitCode::kEngineFailed);
  EXPECT_THAT(failed.what(), HasSubstr("RuntimeError: the fake engine does not boot"));
  const Error exited = BootError(Options("exit-boot"));
  EXPECT_EQ(exited.code(), ExitCode::kEngineFailed);
  EXPECT_THAT(exited.what(), HasSubstr("last words of the fake engine"));
  VllmOptions unknown = Options();
  unknown.engine_arguments["no_such_argument"] = 1;
  const Error refused = BootError(unknown);
  EXPECT_EQ(refused.code(), ExitCode::kBadInput);
  EXPECT_THAT(refused.what(), HasSubstr("no_such_argument"));
  VllmOptions wrong = Options();
  wrong.engine_arguments["dtype"] = "float3";
  EXPECT_EQ(BootError(wrong).code(), ExitCode::kBadInput);
}

TEST_F(VllmEngineTest, ABootThatHangsEnds) {
  VllmOptions options = Options("hang-boot");
  options.boot_timeout = std::chrono::seconds(1);
  const Error error = BootError(options);
  EXPECT_EQ(error.code(), ExitCode::kEngineFailed);
  EXPECT_THAT(error.what(), HasSubstr("alive but silent"));
}

TEST_F(VllmEngineTest, CapacityThatWasNotSeenIsUnknown) {
  const std::unique_ptr<Engine> silent = BootVllm(Options("no-ready"));
  EXPECT_FALSE(silent->facts().kv_capacity.complete());
  EXPECT_THAT(silent->facts().kv_capacity.unknown_reason, HasSubstr("0 READY payloads"));
  const std::unique_ptr<Engine> two = BootVllm(Options("two-engines"));
  ASSERT_EQ(two->facts().kv_capacity.per_engine.size(), 2u);
  EXPECT_EQ(two->facts().kv_capacity.per_engine[1].data_parallel_rank, 1);
}

TEST_F(VllmEngineTest, WithoutTimesNoneAreInvented) {
  const std::unique_ptr<Engine> engine = BootVllm(Options("no-metrics"));
  Sink sink;
  engine->Submit(Requests(1), sink);
  const Outcome outcome = sink.Await(1).at(0);
  EXPECT_EQ(outcome.kinds, (std::vector<EventKind>{EventKind::kFinished}));
}

}  // namespace
}  // namespace plumbline
