#include "engine/simulated/simulated_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulated_testing.h"
#include "tests/engine/core/engine_testing.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

constexpr TimeNs kMs = 1'000'000;
constexpr TimeNs kEndOfTime = 1'000'000 * kMs;

std::unique_ptr<Engine> Boot(const ClusterSpec& cluster = OneInstance()) {
  return MakeSimulatedEngine(std::make_shared<ClusterSpec>(cluster), {}, 2000);
}

Request Ask(RequestId id, std::int64_t input_toks, std::int64_t output_toks, TimeNs due_ns) {
  Request request;
  request.id = id;
  request.input_toks = input_toks;
  request.output_toks = output_toks;
  request.prompt_token_ids.assign(static_cast<std::size_t>(input_toks), static_cast<TokenId>(id));
  request.due_ns = due_ns;
  return request;
}

TEST(SimulatedEngine, TellsTheSameTimesAsTheSimulation) {
  RowCollector collector;
  const ClusterSpec cluster = OneInstance();
  ClusterSimulation simulation(cluster, {}, collector);
  simulation.Add({Asked(0, 50, 5, 2000), Asked(1, 80, 9, 2500), Asked(2, 5, 1, 7 * kMs)});
  while (simulation.Turn()) {
  }

  const auto engine = Boot();
  CollectingSink sink;
  engine->Submit({Ask(0, 50, 5, 2000), Ask(1, 80, 9, 2500), Ask(2, 5, 1, 7 * kMs)}, sink);
  engine->virtual_time()->AdvanceTo(kEndOfTime);
  ASSERT_EQ(collector.rows.size(), 3u);
  for (const SimulatedRow& row : collector.rows) {
    const auto story = sink.Of(row.id);
    ASSERT_EQ(story.token_times_ns.size(), static_cast<std::size_t>(row.output_toks));
    EXPECT_EQ(story.token_times_ns.front(), row.arrival_ns + row.ttft_ns);
    EXPECT_EQ(story.token_times_ns.back(), row.end_ns);
    EXPECT_EQ(story.scheduled_ns, row.arrival_ns + row.queuing_delay_ns) << "prompts of one chunk";
    EXPECT_EQ(story.finished, FinishReason::kLength);
  }
  EXPECT_FALSE(sink.order_violated());
}

TEST(SimulatedEngine, TakesRequestsAsTheyComeAndRestsBetween) {
  const auto engine = Boot();
  CollectingSink sink;
  VirtualTime& time = *engine->virtual_time();
  EXPECT_EQ(time.NextEventTime(), std::nullopt);
  engine->Submit({Ask(0, 5, 2, 1000)}, sink);
  time.AdvanceTo(5 * kMs);
  EXPECT_EQ(sink.Of(0).finished, FinishReason::kLength);
  EXPECT_EQ(time.NextEventTime(), std::nullopt) << "idle for good, as far as it knows";
  engine->Submit({Ask(1, 5, 2, 9 * kMs)}, sink);
  time.AdvanceTo(kEndOfTime);
  EXPECT_EQ(sink.Of(1).finished, FinishReason::kLength);
  EXPECT_GE(sink.Of(1).queued_ns, 9 * kMs);
  EXPECT_LT(sink.Of(1).queued_ns, 10 * kMs) << "the reference looks every millisecond";
}

TEST(SimulatedEngine, FactsTellTheCapacityOfEachInstance) {
  ClusterSpec cluster = OneInstance();
  cluster.instances.push_back(cluster.instances[0]);
  const auto engine = Boot(cluster);
  EXPECT_EQ(engine->facts().engine, "simulated");
  ASSERT_TRUE(engine->facts().kv_capacity.complete());
  EXPECT_EQ(engine->facts().kv_capacity.per_engine.size(), 2u);
}

TEST(SimulatedEngine, RecordsStepsAndCounts) {
  const auto engine = Boot();
  CollectingSink sink;
  engine->Submit({Ask(0, 5, 3, 1000), Ask(1, 5, 3, 1000)}, sink);
  engine->virtual_time()->AdvanceTo(kEndOfTime);
  const std::vector<StepRecord> steps = engine->TakeSteps();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].prefill_tokens, 10);
  EXPECT_EQ(steps[1].decodes, 2);
  EXPECT_EQ(steps[1].start_ns, steps[0].start_ns + steps[0].duration_ns);
  EXPECT_EQ(engine->Sample().generation_tokens, 6);
  EXPECT_EQ(engine->Sample().prompt_tokens, 10);
  EXPECT_EQ(engine->Sample().kv_blocks_used, 0);
}

TEST(SimulatedEngine, RefusesAndCancels) {
  const auto engine = Boot();
  CollectingSink sink;
  Request outside = Ask(3, 5, 5, 0);
  outside.prompt_token_ids[2] = 5000;
  engine->Submit({Ask(0, 5, 400, 0), Ask(1, 5, 400, 0), Ask(2, 1999, 2, 0), outside}, sink);
  VirtualTime& time = *engine->virtual_time();
  time.AdvanceTo(5000);
  EXPECT_THAT(sink.Of(2).text, HasSubstr("max_model_len 2000"));
  EXPECT_THAT(sink.Of(3).text, HasSubstr("vocabulary of 128"));
  engine->Cancel(0);
  time.AdvanceTo(6000);
  EXPECT_EQ(sink.Of(0).finished, FinishReason::kCancelled);
  EXPECT_FALSE(engine->ResetPrefixCache());
  time.AdvanceTo(kEndOfTime);
  EXPECT_EQ(sink.Of(1).token_times_ns.size(), 400u);
  EXPECT_TRUE(engine->ResetPrefixCache());
  EXPECT_FALSE(sink.order_violated());
}

TEST(SimulatedEngine, ShutdownEndsWhatIsInFlight) {
  const auto engine = Boot();
  CollectingSink sink;
  engine->Submit({Ask(0, 5, 400, 0), Ask(1, 5, 400, 90 * kMs)}, sink);
  engine->virtual_time()->AdvanceTo(5000);
  engine->Shutdown();
  EXPECT_EQ(sink.Of(0).finished, FinishReason::kCancelled);
  EXPECT_EQ(sink.Of(1).finished, FinishReason::kCancelled);
}

TEST(SimulatedEngine, AnsweredPromptsAreCachedByTheirRecordedAnswer) {
  const auto engine = Boot();
  CollectingSink sink;
  Request first = Ask(0, 8, 8, 0);
  first.recorded_output_token_ids.assign(8, 7);
  Request second = Ask(1, 17, 1, 50 * kMs);
  second.prompt_token_ids.assign(17, 7);
  std::fill_n(second.prompt_token_ids.begin(), 8, 0);
  engine->Submit({first, second}, sink);
  engine->virtual_time()->AdvanceTo(kEndOfTime);
  EXPECT_EQ(sink.Of(1).cached, 12u) << "the last answer token was never computed";
}

}  // namespace
}  // namespace plumbline
