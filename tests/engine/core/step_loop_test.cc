#include "engine/core/step_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine_testing.h"

namespace plumbline {
namespace {

using testing::ElementsAre;

struct Rig {
  explicit Rig(SchedulingPolicy policy = kRealEnginePolicy)
      : loop(Parts().scheduler, policy, RequestLimits(Parts().facts), std::make_unique<FakeExecutor>(),
             TimeMode::kVirtual) {}

  void Submit(const Request& request) { Submit(request, sink); }
  void Submit(const Request& request, EventSink& other) {
    loop.Submit(loop.Prepare(request, other), request.due_ns);
  }
  // Moves through all events and returns their times.
  std::vector<TimeNs> Drain() {
    std::vector<TimeNs> times;
    while (const auto next = loop.NextEventTime()) {
      times.push_back(*next);
      loop.Step(*next);
    }
    return times;
  }

  CollectingSink sink;
  StepLoop loop;
};

TEST(StepLoop, StepsFollowEachOtherAndStampWhereThingsHappen) {
  Rig rig;
  rig.Submit(MakeRequest(1, 6, 3, 50));
  EXPECT_THAT(rig.Drain(), ElementsAre(50, 150, 250, 350));
  const auto story = rig.sink.Of(1);
  EXPECT_EQ(story.queued_ns, 50);
  EXPECT_EQ(story.scheduled_ns, 50);
  EXPECT_THAT(story.token_times_ns, ElementsAre(150, 250, 350));
  EXPECT_THAT(story.token_ids, ElementsAre(6, 7, 8));
  EXPECT_EQ(story.finished, FinishReason::kLength);
  EXPECT_FALSE(rig.sink.order_violated());
  EXPECT_EQ(rig.sink.calls(), 4) << "one delivery a step";
}

TEST(StepLoop, ARequestThatComesDuringAStepIsSeenAfterIt) {
  Rig rig;
  rig.Submit(MakeRequest(1, 6, 3, 0));
  rig.Submit(MakeRequest(2, 6, 1, 101));
  EXPECT_THAT(rig.Drain(), ElementsAre(0, 100, 200, 300));
  EXPECT_EQ(rig.sink.Of(2).queued_ns, 200);
  EXPECT_THAT(rig.sink.Of(2).token_times_ns, ElementsAre(300));
}

TEST(StepLoop, IdlePollOfTheReferenceSeesARequestAtTheNextPoll) {
  Rig rig(kReferenceSimulatorPolicy);
  rig.Submit(MakeRequest(1, 6, 1, 0));
  rig.Drain();
  const TimeNs last = 1'000'100;
  EXPECT_THAT(rig.sink.Of(1).token_times_ns, ElementsAre(last)) << "seen at 1 ms, one step of 100 ns";
  rig.Submit(MakeRequest(2, 6, 1, last + 2'500'000));
  EXPECT_THAT(rig.Drain(), ElementsAre(last + 3'000'000, last + 3'000'100));
}

TEST(StepLoop, StepBeforeTheEndOfTheBatchChangesNothing) {
  Rig rig;
  rig.Submit(MakeRequest(1, 6, 1));
  rig.loop.Step(0);
  rig.loop.Step(50);
  EXPECT_EQ(rig.sink.num_finished(), 0u);
  EXPECT_EQ(rig.loop.NextEventTime(), 100);
}

TEST(StepLoop, CancelEndsWaitingRunningAndFutureRequests) {
  Rig rig;
  rig.Submit(MakeRequest(1, 6, 9));
  rig.Submit(MakeRequest(2, 6, 9, 1'000'000));
  rig.loop.Step(0);
  for (const RequestId id : {1, 2, 77}) rig.loop.Cancel(id);
  rig.Drain();
  EXPECT_EQ(rig.sink.Of(1).finished, FinishReason::kCancelled);
  EXPECT_EQ(rig.sink.Of(2).finished, FinishReason::kCancelled);
  EXPECT_EQ(rig.sink.Of(1).token_times_ns.size(), 1u) << "the step under way still gave its token";
  EXPECT_EQ(rig.loop.CurrentCounters().kv_blocks_used, 0);
  EXPECT_EQ(rig.loop.NextEventTime(), std::nullopt);
}

TEST(StepLoop, ARequestWhoseIdIsInFlightIsRefused) {
  Rig rig;
  rig.Submit(MakeRequest(1, 6, 9));
  CollectingSink other;
  rig.Submit(MakeRequest(1, 4, 2), other);
  rig.Drain();
  EXPECT_EQ(other.Of(1).finished, FinishReason::kRefused);
  EXPECT_THAT(other.Of(1).text, testing::HasSubstr("in flight"));
  EXPECT_EQ(rig.sink.Of(1).finished, FinishReason::kLength);
}

TEST(StepLoop, EachSinkGetsItsOwnEventsInOneCallAStep) {
  Rig rig;
  std::vector<std::unique_ptr<CollectingSink>> sinks;
  for (RequestId id = 0; id < 12; ++id) {
    sinks.push_back(std::make_unique<CollectingSink>());
    rig.Submit(MakeRequest(id, 2, 2), *sinks.back());
  }
  rig.Drain();
  for (RequestId id = 0; id < 12; ++id) {
    const CollectingSink& sink = *sinks[static_cast<std::size_t>(id)];
    EXPECT_EQ(sink.num_finished(), 1u);
    EXPECT_EQ(sink.Of(id).finished, FinishReason::kLength);
    EXPECT_LE(sink.calls(), 4);
  }
}

TEST(StepLoop, StepsAreRecorded) {
  Rig rig;
  rig.Submit(MakeRequest(1, 6, 2));
  rig.Drain();
  std::vector<StepRecord> steps;
  rig.loop.TakeSteps(steps);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].start_ns, 0);
  EXPECT_EQ(steps[0].duration_ns, 100);
  EXPECT_EQ(steps[0].prefill_tokens, 6);
  EXPECT_EQ(steps[0].decodes, 0);
  EXPECT_EQ(steps[0].kv_blocks_used, 2);
  EXPECT_EQ(steps[1].decodes, 1);
  EXPECT_EQ(steps[1].running, 1);
  steps.clear();
  rig.loop.TakeSteps(steps);
  EXPECT_TRUE(steps.empty());
}

TEST(StepLoop, FinishAllEndsEverythingInOrderOfIds) {
  Rig rig;
  rig.Submit(MakeRequest(3, 6, 9));
  rig.Submit(MakeRequest(2, 6, 9));
  rig.Submit(MakeRequest(1, 6, 9, 500));
  rig.loop.Step(0);
  rig.loop.FinishAll(40, FinishReason::kError, "broken");
  for (const RequestId id : {1, 2, 3}) {
    EXPECT_EQ(rig.sink.Of(id).finished, FinishReason::kError);
    EXPECT_EQ(rig.sink.Of(id).text, "broken");
  }
  EXPECT_EQ(rig.loop.CurrentCounters().kv_blocks_used, 0);
  EXPECT_EQ(rig.loop.NextEventTime(), std::nullopt);
}

TEST(StepLoop, CountersFollowTheTotals) {
  Rig rig;
  rig.Submit(MakeRequest(1, 9, 2));
  Request same = MakeRequest(2, 9, 2);
  same.prompt_token_ids = MakeRequest(1, 9, 2).prompt_token_ids;
  rig.Submit(same);
  rig.Drain();
  const Counters counters = rig.loop.CurrentCounters();
  EXPECT_EQ(counters.prompt_tokens, 18);
  EXPECT_EQ(counters.prompt_tokens_cached, 8);
  EXPECT_EQ(counters.prompt_tokens_computed, 10);
  EXPECT_EQ(counters.generation_tokens, 4);
  EXPECT_EQ(rig.sink.Of(2).cached, 8u);
}

}  // namespace
}  // namespace plumbline
