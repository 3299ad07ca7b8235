#include "engine/core/core_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "engine/base/error.h"
#include "engine_testing.h"

namespace plumbline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CoreEngine, ServesABurstAsOneUnit) {
  std::vector<std::size_t> batch_sizes;
  auto engine = MakeCoreEngine(Parts(std::make_unique<FakeExecutor>(
      0, [&](const Batch& batch) { batch_sizes.push_back(batch.entries.size()); })));
  CollectingSink sink;
  engine->Submit(Burst(0, 5, 6, 4), sink);
  sink.WaitForFinished(5);
  engine->Shutdown();
  EXPECT_EQ(batch_sizes.front(), 5u);
  for (RequestId id = 0; id < 5; ++id) {
    const auto story = sink.Of(id);
    EXPECT_EQ(story.finished, FinishReason::kLength);
    EXPECT_THAT(story.token_ids, ElementsAre(6, 7, 8, 9));
    EXPECT_LE(story.queued_ns, story.scheduled_ns);
    EXPECT_LE(story.scheduled_ns, story.token_times_ns.front());
  }
  EXPECT_FALSE(sink.order_violated());
}

TEST(CoreEngine, FactsTellWhatTheSchedulerResolvedTo) {
  const auto engine = MakeCoreEngine(Parts());
  EXPECT_EQ(engine->facts().max_num_seqs, 8);
  EXPECT_EQ(engine->facts().max_num_batched_tokens, 32);
  EXPECT_TRUE(engine->facts().kv_capacity.complete());
  EXPECT_EQ(engine->facts().kv_capacity.TotalBlocks(), 20);
  EXPECT_EQ(engine->virtual_time(), nullptr);
}

TEST(CoreEngine, RefusesWithAnEventAndServesTheRest) {
  const auto engine = MakeCoreEngine(Parts());
  CollectingSink sink;
  engine->Submit({MakeRequest(0, 70, 4), MakeRequest(1, 6, 4)}, sink);
  sink.WaitForFinished(2);
  EXPECT_EQ(sink.Of(0).finished, FinishReason::kRefused);
  EXPECT_EQ(sink.Of(0).queued_ns, -1);
  EXPECT_EQ(sink.Of(1).finished, FinishReason::kLength);
}

TEST(CoreEngine, CancelEndsARequestInMidAnswer) {
  std::promise<void> go_on;
  std::shared_future<void> gate = go_on.get_future().share();
  std::atomic<int> steps = 0;
  const auto engine = MakeCoreEngine(Parts(std::make_unique<FakeExecutor>(0, [&](const Batch&) {
    if (++steps == 3) gate.wait();
  })));
  CollectingSink sink;
  engine->Submit({MakeRequest(0, 6, 50)}, sink);
  sink.WaitForTokens(0, 2);
  engine->Cancel(0);
  engine->Cancel(99);
  go_on.set_value();
  sink.WaitForFinished(1);
  EXPECT_EQ(sink.Of(0).finished, FinishReason::kCancelled);
  EXPECT_EQ(sink.Of(0).token_times_ns.size(), 3u);
  EXPECT_FALSE(sink.order_violated());
}

TEST(CoreEngine, ShutdownInFlightCancelsEverything) {
  auto engine = MakeCoreEngine(Parts());
  CollectingSink sink;
  engine->Submit(Burst(0, 20, 6, 50), sink);
  sink.WaitForTokens(0, 1);
  engine->Shutdown();
  EXPECT_EQ(sink.num_finished(), 20u);
  engine->Shutdown();
  EXPECT_THROW(engine->Submit({}, sink), Error);
  EXPECT_FALSE(sink.order_violated());
}

TEST(CoreEngine, DestructorShutsDown) {
  CollectingSink sink;
  MakeCoreEngine(Parts())->Submit(Burst(0, 20, 6, 50), sink);
  EXPECT_EQ(sink.num_finished(), 20u);
}

TEST(CoreEngine, DeadExecutorFinishesAllWithErrorAndThrowsFromThenOn) {
  const auto engine = MakeCoreEngine(Parts(std::make_unique<FakeExecutor>(0, [n = 0](const Batch&) mutable {
    if (++n == 3) throw std::runtime_error("out of smoke");
  })));
  CollectingSink sink;
  engine->Submit(Burst(0, 3, 6, 50), sink);
  sink.WaitForFinished(3);
  for (RequestId id = 0; id < 3; ++id) {
    EXPECT_EQ(sink.Of(id).finished, FinishReason::kError);
    EXPECT_THAT(sink.Of(id).text, HasSubstr("out of smoke"));
    EXPECT_EQ(sink.Of(id).token_times_ns.size(), 2u);
  }
  const std::vector<std::function<void()>> calls = {[&] { engine->Submit({}, sink); },
                                                    [&] { engine->Cancel(0); }, [&] { engine->Sample(); },
                                                    [&] { engine->ResetPrefixCache(); }};
  for (const auto& call : calls) {
    try {
      call();
      ADD_FAILURE() << "a dead engine answered";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kEngineFailed);
      EXPECT_THAT(error.what(), HasSubstr("out of smoke"));
    }
  }
  EXPECT_EQ(engine->TakeSteps().size(), 2u) << "what it did before it died is still told";
  engine->Shutdown();
}

TEST(CoreEngine, ResetForgetsPrefixesOnlyWhenIdle) {
  std::promise<void> go_on;
  std::shared_future<void> gate = go_on.get_future().share();
  std::atomic<bool> hold = false;
  const auto engine = MakeCoreEngine(Parts(std::make_unique<FakeExecutor>(0, [&](const Batch&) {
    if (hold) gate.wait();
  })));
  const auto ask_again = [&](RequestId id) {
    Request request = MakeRequest(id, 9, 2);
    request.prompt_token_ids = Ids(9);
    return std::vector<Request>{request};
  };
  CollectingSink sink;
  engine->Submit(ask_again(0), sink);
  sink.WaitForFinished(1);
  engine->Submit(ask_again(1), sink);
  sink.WaitForFinished(2);
  EXPECT_EQ(sink.Of(1).cached, 8u);
  EXPECT_TRUE(engine->ResetPrefixCache());
  hold = true;
  engine->Submit(ask_again(2), sink);
  std::future<bool> reset = std::async(std::launch::async, [&] { return engine->ResetPrefixCache(); });
  go_on.set_value();
  reset.get();
  sink.WaitForFinished(3);
  EXPECT_EQ(sink.Of(2).cached, 0u);
}

TEST(CoreEngine, CountersAndStepsAddUp) {
  const auto engine = MakeCoreEngine(Parts());
  CollectingSink sink;
  engine->Submit(Burst(0, 4, 6, 4), sink);
  sink.WaitForFinished(4);
  engine->Shutdown();
  std::int64_t prefill = 0;
  std::int64_t decodes = 0;
  for (const StepRecord& step : engine->TakeSteps()) {
    prefill += step.prefill_tokens;
    decodes += step.decodes;
    EXPECT_GE(step.duration_ns, 0);
  }
  EXPECT_EQ(prefill + decodes, 4 * 6 + 4 * 3);
}

TEST(CoreEngine, TakesRequestsFromOneThreadWhileOthersWatchAndCancel) {
  const auto engine = MakeCoreEngine(Parts());
  CollectingSink sink;
  std::atomic<bool> stop = false;
  std::thread watcher([&] {
    std::int64_t last = 0;
    while (!stop) {
      const Counters counters = engine->Sample();
      EXPECT_GE(counters.generation_tokens, last);
      last = counters.generation_tokens;
      std::this_thread::yield();
    }
  });
  std::thread canceller([&] {
    for (RequestId id = 0; id < 200; id += 7) engine->Cancel(id);
  });
  for (RequestId id = 0; id < 200; ++id) engine->Submit({MakeRequest(id, 6, 5)}, sink);
  sink.WaitForFinished(200);
  stop = true;
  watcher.join();
  canceller.join();
  EXPECT_FALSE(sink.order_violated());
}

TEST(VirtualCoreEngine, MovesOnlyWhenToldAndIsExact) {
  const auto engine = MakeVirtualCoreEngine(Parts(std::make_unique<FakeExecutor>(1000)));
  CollectingSink sink;
  VirtualTime* const time = engine->virtual_time();
  ASSERT_NE(time, nullptr);
  EXPECT_EQ(time->NextEventTime(), std::nullopt);
  engine->Submit({MakeRequest(0, 6, 3, 500)}, sink);
  EXPECT_EQ(time->NextEventTime(), 500);
  time->AdvanceTo(1499);
  EXPECT_TRUE(sink.Of(0).token_times_ns.empty());
  time->AdvanceTo(10'000);
  EXPECT_THAT(sink.Of(0).token_times_ns, ElementsAre(1500, 2500, 3500));
  engine->Submit({MakeRequest(1, 6, 1, 0)}, sink);
  EXPECT_EQ(time->NextEventTime(), 10'000) << "no request arrives in the past";
  engine->Shutdown();
  EXPECT_EQ(sink.Of(1).finished, FinishReason::kCancelled);
}

TEST(VirtualCoreEngine, DiesLikeTheRealOne) {
  const auto engine = MakeVirtualCoreEngine(Parts(
      std::make_unique<FakeExecutor>(1000, [](const Batch&) { throw std::runtime_error("no table"); })));
  CollectingSink sink;
  engine->Submit({MakeRequest(0, 6, 3)}, sink);
  EXPECT_THROW(engine->virtual_time()->AdvanceTo(5), Error);
  EXPECT_EQ(sink.Of(0).finished, FinishReason::kError);
  EXPECT_THROW(engine->Sample(), Error);
}

TEST(VirtualCoreEngine, TellsNoIdsWhereTheExecutorHasNone) {
  class TimeOnly final : public Executor {
   public:
    TimeNs Execute(const Batch&, std::span<TokenId> sampled) override {
      EXPECT_TRUE(sampled.empty());
      return 10;
    }
    bool TellsTokenIds() const override { return false; }
  };
  const auto engine = MakeVirtualCoreEngine(Parts(std::make_unique<TimeOnly>()));
  CollectingSink sink;
  engine->Submit({MakeRequest(0, 6, 3)}, sink);
  engine->virtual_time()->AdvanceTo(1000);
  EXPECT_EQ(sink.Of(0).token_times_ns.size(), 3u);
  EXPECT_TRUE(sink.Of(0).token_ids.empty());
}

// Answers a step's length from its shape; notes the thread.
class ProbedExecutor final : public Executor, private StepProbe {
 public:
  explicit ProbedExecutor(std::function<void(const Batch&)> before = {})
      : executor_(100, std::move(before)) {}

  TimeNs Execute(const Batch& batch, std::span<TokenId> sampled) override {
    thread_ = std::this_thread::get_id();
    return executor_.Execute(batch, sampled);
  }
  StepProbe* step_probe() override { return this; }

 private:
  TimeNs RunStep(const StepShape& shape) override {
    EXPECT_EQ(std::this_thread::get_id(), thread_) << "not the thread of the other steps";
    if (shape.decode_contexts.empty()) ThrowBadInput({.problem = "empty shape"});
    return shape.decode_contexts.front();
  }

  FakeExecutor executor_;
  std::thread::id thread_;
};

TEST(CoreEngine, RunsProbedStepsOnItsOwnThreadWhileIdle) {
  const std::unique_ptr<Engine> engine = MakeCoreEngine(Parts(std::make_unique<ProbedExecutor>()));
  CollectingSink sink;
  engine->Submit({MakeRequest(0, 4, 2)}, sink);
  sink.WaitForFinished(1);
  StepProbe* probe = engine->step_probe();
  ASSERT_NE(probe, nullptr);
  EXPECT_EQ(probe->RunStep({.decode_contexts = {77}}), 77);
  EXPECT_THROW(probe->RunStep({}), Error);
  engine->Submit({MakeRequest(1, 4, 2)}, sink);  // it goes on after both
  sink.WaitForFinished(2);
  engine->Shutdown();
  EXPECT_THROW(probe->RunStep({.decode_contexts = {77}}), Error);
}

TEST(CoreEngine, RefusesAProbedStepWhileARequestIsInFlight) {
  std::promise<void> asked;
  std::promise<ExitCode> answer;
  const std::shared_future<void> was_asked = asked.get_future().share();
  const std::shared_future<ExitCode> answered = answer.get_future().share();
  // The first step lasts until somebody is about to ask, each later one until the answer is there, or long
  // enough for the question to come in between.
  const std::unique_ptr<Engine> engine =
      MakeCoreEngine(Parts(std::make_unique<ProbedExecutor>([was_asked, answered](const Batch&) {
        was_asked.wait();
        answered.wait_for(std::chrono::milliseconds(100));
      })));
  CollectingSink sink;
  engine->Submit({MakeRequest(0, 4, 20)}, sink);
  std::thread asker([&] {
    asked.set_value();
    try {
      engine->step_probe()->RunStep({.decode_contexts = {1}});
      answer.set_value(ExitCode::kPass);
    } catch (const Error& error) {
      answer.set_value(error.code());
    }
  });
  asker.join();
  EXPECT_EQ(answered.get(), ExitCode::kInvalid);
  sink.WaitForFinished(1);
}

TEST(CoreEngine, OffersNoProbeWhereTheExecutorHasNone) {
  EXPECT_EQ(MakeCoreEngine(Parts())->step_probe(), nullptr);
  EXPECT_EQ(MakeVirtualCoreEngine(Parts(std::make_unique<ProbedExecutor>()))->step_probe(), nullptr);
}

}  // namespace
}  // namespace plumbline
