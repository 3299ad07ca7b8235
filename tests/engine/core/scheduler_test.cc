#include "engine/core/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "scheduler_testing.h"

namespace plumbline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

SchedulerConfig Config(std::int64_t blocks, std::int64_t budget = 100, std::int64_t block_size = 4) {
  return {
      .max_num_seqs = 8, .max_num_batched_tokens = budget, .block_size = block_size, .num_blocks = blocks};
}

// A scheduler with its batch; time does not matter to it but for arrivals.
struct Rig {
  explicit Rig(const SchedulerConfig& config, const SchedulingPolicy& policy = kRealEnginePolicy)
      : scheduler(config, policy, observer) {}

  auto Schedule(TimeNs now = 0) {
    scheduler.Schedule(now, batch);
    return Content(batch);
  }
  void Complete(TimeNs now = 0, TokenId token = 7) {
    sampled.assign(batch.entries.size(), token);
    scheduler.Complete(batch, now, sampled);
  }
  auto Step(TimeNs now = 0) {
    const auto content = Schedule(now);
    Complete(now);
    return content;
  }

  RecordingObserver observer;
  Scheduler scheduler;
  Batch batch;
  std::vector<TokenId> sampled;
};

TEST(Scheduler, ServesAPromptThenOneTokenAStep) {
  Rig rig(Config(10));
  Sequence s = MakeSequence(1, 5, 3, 0);
  rig.scheduler.Enqueue(s);
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(1, 5)));
  EXPECT_THAT(rig.observer.Take(), ElementsAre("scheduled 1", "prefilled 1", "token 1"));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(rig.observer.Take(),
              ElementsAre("scheduled 1", "token 1", "scheduled 1", "token 1", "finished 1"));
  EXPECT_THAT(rig.Step(), IsEmpty());
  EXPECT_TRUE(rig.scheduler.idle());
  EXPECT_EQ(rig.scheduler.kv_cache().pool().num_held(), 0);
}

TEST(Scheduler, ABatchTellsAnExecutorAllItNeeds) {
  Rig rig(Config(10, 3));
  Sequence s = MakeSequence(1, 5, 3, 100);
  s.sampling = {.temperature = 0.5, .seed = 9};
  rig.scheduler.Enqueue(s);
  rig.Schedule();
  const BatchEntry first = rig.batch.entries[0];
  EXPECT_EQ(first.first_position, 0);
  EXPECT_FALSE(first.samples);
  EXPECT_THAT(first.token_ids, ElementsAre(100, 101, 102));
  EXPECT_THAT(first.block_table, ElementsAre(0));
  EXPECT_EQ(first.sampling->seed, 9u);
  rig.Complete();
  rig.Schedule();
  const BatchEntry second = rig.batch.entries[0];
  EXPECT_EQ(second.first_position, 3);
  EXPECT_TRUE(second.samples);
  EXPECT_EQ(second.output_index, 0);
  EXPECT_THAT(second.token_ids, ElementsAre(103, 104));
  EXPECT_THAT(second.block_table, ElementsAre(0, 1));
  rig.Complete(0, 55);
  rig.Schedule();
  const BatchEntry third = rig.batch.entries[0];
  EXPECT_THAT(third.token_ids, ElementsAre(55)) << "the sampled id goes in";
  EXPECT_EQ(third.first_position, 5);
  EXPECT_EQ(third.output_index, 1);
}

TEST(Scheduler, BatchFiguresCountPrefillsAndDecodes) {
  Rig rig(Config(20, 10));
  Sequence a = MakeSequence(0, 4, 9, 0);
  Sequence b = MakeSequence(1, 12, 9, 200);
  rig.scheduler.Enqueue(a);
  rig.scheduler.Enqueue(b);
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 4), Pair(1, 6)));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 1), Pair(1, 6)));
  EXPECT_EQ(rig.batch.total_tokens, 7);
  EXPECT_EQ(rig.batch.prefill_tokens, 6);
  EXPECT_EQ(rig.batch.prefill_context, 6);
  EXPECT_EQ(rig.batch.num_prefills, 1);
  EXPECT_EQ(rig.batch.num_decodes, 1);
  EXPECT_EQ(rig.batch.decode_context_sum, 4);
  rig.Schedule();
  EXPECT_EQ(rig.batch.decode_context_max, 12);
  EXPECT_EQ(rig.batch.decode_context_min, 5);
}

TEST(Scheduler, LongPromptIsChunkedByTheBudgetBehindRunningDecodes) {
  Rig rig(Config(50, 8));
  Sequence a = MakeSequence(0, 4, 9, 0);
  Sequence b = MakeSequence(1, 20, 2, 200);
  rig.scheduler.Enqueue(a);
  rig.scheduler.Enqueue(b);
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 4), Pair(1, 4)));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 1), Pair(1, 7)));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 1), Pair(1, 7)));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 1), Pair(1, 2)));
}

TEST(Scheduler, ThresholdLimitsAPromptsShare) {
  SchedulerConfig config = Config(50, 20);
  config.long_prefill_token_threshold = 6;
  Rig rig(config);
  Sequence a = MakeSequence(0, 10, 2, 0);
  rig.scheduler.Enqueue(a);
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 6)));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 4)));
}

TEST(Scheduler, WithoutChunkingAPromptWaitsForAStepOfItsOwn) {
  SchedulerConfig config = Config(50, 10);
  config.enable_chunked_prefill = false;
  Rig rig(config);
  Sequence a = MakeSequence(0, 7, 2, 0);
  Sequence b = MakeSequence(1, 8, 2, 200);
  rig.scheduler.Enqueue(a);
  rig.scheduler.Enqueue(b);
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 7)));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 1), Pair(1, 8)));
}

TEST(Scheduler, AdmitsNoMoreThanMaxNumSeqs) {
  SchedulerConfig config = Config(50);
  config.max_num_seqs = 2;
  Rig rig(config);
  std::vector<Sequence> s;
  for (RequestId id = 0; id < 3; ++id) s.push_back(MakeSequence(id, 4, 2));
  for (Sequence& sequence : s) rig.scheduler.Enqueue(sequence);
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 4), Pair(1, 4)));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 1), Pair(1, 1)));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(2, 4)));
}

TEST(Scheduler, DoesNotSeeARequestBeforeItsArrival) {
  Rig rig(Config(50));
  Sequence early = MakeSequence(0, 4, 2, -1, 100);
  Sequence late = MakeSequence(1, 4, 2, -1, 200);
  rig.scheduler.Enqueue(late);
  rig.scheduler.Enqueue(early);
  EXPECT_THAT(rig.Step(99), IsEmpty());
  EXPECT_THAT(rig.Step(100), ElementsAre(Pair(0, 4)));
  EXPECT_THAT(rig.Step(200), ElementsAre(Pair(0, 1), Pair(1, 4)));
}

// Three blocks of four: two prompts of four fit, until the first needs a second block and then a third.
TEST(Scheduler, PreemptsTheLatestAndRecomputesIt) {
  Rig rig(Config(3));
  Sequence a = MakeSequence(0, 4, 6);
  Sequence b = MakeSequence(1, 4, 4);
  rig.scheduler.Enqueue(a);
  rig.scheduler.Enqueue(b);
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 4), Pair(1, 4)));
  EXPECT_THAT(rig.observer.Take(),
              ElementsAre("scheduled 0", "scheduled 1", "prefilled 0", "token 0", "prefilled 1", "token 1"));
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 1))) << "one block left, both need one: the later one goes";
  EXPECT_THAT(rig.observer.Take(), ElementsAre("scheduled 0", "preempted 1", "token 0"));
  EXPECT_EQ(rig.batch.preempted, 1);
  EXPECT_EQ(b.computed, 0);
  EXPECT_EQ(b.preemptions, 1);
  while (a.state != SequenceState::kFinished) EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 1)));
  rig.observer.Take();
  // The prompt and the token that was out already are computed again; then a new token comes.
  EXPECT_THAT(rig.Step(), ElementsAre(Pair(1, 5)));
  EXPECT_THAT(rig.observer.Take(), ElementsAre("scheduled 1", "token 1"));
  EXPECT_EQ(rig.scheduler.totals().recomputed_tokens, 5);
  EXPECT_EQ(rig.scheduler.totals().preemptions, 1);
  while (!rig.scheduler.idle()) rig.Step();
  EXPECT_EQ(rig.scheduler.totals().generated_tokens, 10);
}

TEST(Scheduler, APreemptedRequestComesBeforeEarlierArrivals) {
  Rig rig(Config(3));
  Sequence a = MakeSequence(0, 4, 2);
  Sequence b = MakeSequence(2, 4, 4, -1, 5);
  Sequence c = MakeSequence(1, 4, 4, -1, 9);
  for (Sequence* s : {&a, &b}) rig.scheduler.Enqueue(*s);
  rig.Step(10);
  rig.scheduler.Enqueue(c);
  EXPECT_THAT(rig.Step(10), ElementsAre(Pair(0, 1))) << "2 is preempted; nothing is admitted in that step";
  EXPECT_THAT(rig.Step(10), ElementsAre(Pair(2, 5), Pair(1, 4)));
}

TEST(Scheduler, ReserveRuleAdmitsOnlyWhatFitsAsAWhole) {
  SchedulerConfig config = Config(6, 4);
  Sequence a = MakeSequence(0, 8, 4);
  Sequence b = MakeSequence(1, 16, 2);
  {
    Rig rig(config);
    rig.scheduler.Enqueue(a);
    rig.Step();
    rig.Step();
    rig.scheduler.Enqueue(b);
    // Request 0 holds 2 of 6 blocks and takes a third for this token: 3 are free, 4 are needed.
    EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 1)));
  }
  {
    config.reserve_full_isl = false;
    a = MakeSequence(0, 8, 4);
    b = MakeSequence(1, 16, 2);
    Rig rig(config);
    rig.scheduler.Enqueue(a);
    rig.Step();
    rig.Step();
    rig.scheduler.Enqueue(b);
    EXPECT_THAT(rig.Step(), ElementsAre(Pair(0, 1), Pair(1, 3)));
  }
}

TEST(Scheduler, SamePromptInTheSameStepHitsBlocksThatAreBeingComputed) {
  Rig rig(Config(20));
  Sequence a = MakeSequence(0, 9, 2, 0);
  Sequence b = MakeSequence(1, 9, 2, 0);
  rig.scheduler.Enqueue(a);
  rig.scheduler.Enqueue(b);
  EXPECT_THAT(rig.Schedule(), ElementsAre(Pair(0, 9), Pair(1, 1)));
  EXPECT_EQ(rig.batch.entries[1].first_position, 8);
  EXPECT_EQ(b.cached, 8);
  EXPECT_THAT(rig.batch.entries[1].block_table, ElementsAre(0, 1, 3));
  rig.Complete();
  EXPECT_EQ(rig.scheduler.totals().prefix_requested_tokens, 18);
  EXPECT_EQ(rig.scheduler.totals().prefix_hit_tokens, 8);
  EXPECT_EQ(rig.scheduler.totals().prompt_tokens, 18);
  EXPECT_EQ(rig.scheduler.totals().prompt_tokens_cached, 8);
}

TEST(Scheduler, AFollowUpHitsTheSampledAnswerOfTheTurnBefore) {
  Rig rig(Config(20));
  Sequence first = MakeSequence(0, 6, 4, 0);
  rig.scheduler.Enqueue(first);
  while (!rig.scheduler.idle()) rig.Step();
  Sequence second = MakeSequence(1, 13, 1);
  second.token_ids = {0, 1, 2, 3, 4, 5, 7, 7, 7, 7, 50, 51, 52};
  rig.scheduler.Enqueue(second);
  rig.Step();
  EXPECT_EQ(second.cached, 8) << "the fourth answer token was never computed into the cache";
}

TEST(Scheduler, PreemptedRequestFindsItsOwnBlocksAgain) {
  Rig rig(Config(4));
  Sequence a = MakeSequence(0, 4, 5, 0);
  Sequence b = MakeSequence(1, 8, 3, 100);
  rig.scheduler.Enqueue(a);
  rig.scheduler.Enqueue(b);
  rig.Step();
  rig.Step();
  EXPECT_EQ(b.preemptions, 1);
  while (b.state != SequenceState::kFinished) rig.Step();
  EXPECT_EQ(b.cached, 8) << "nobody needed its two full blocks in the meantime";
  EXPECT_EQ(rig.scheduler.totals().recomputed_tokens, 1);
}

TEST(Scheduler, RemoveFreesWhereverTheRequestIs) {
  Rig rig(Config(20));
  Sequence running = MakeSequence(0, 6, 4, 0);
  Sequence waiting = MakeSequence(1, 6, 4, 0, 1000);
  rig.scheduler.Enqueue(running);
  rig.scheduler.Enqueue(waiting);
  rig.Schedule();
  rig.scheduler.Remove(waiting);
  rig.scheduler.Remove(running);
  EXPECT_EQ(running.batches_in_flight, 1) << "its batch is still being computed";
  rig.Complete();
  EXPECT_EQ(running.batches_in_flight, 0);
  EXPECT_THAT(rig.observer.Take(), ElementsAre("scheduled 0")) << "no token after it was removed";
  EXPECT_TRUE(rig.scheduler.idle());
  EXPECT_EQ(rig.scheduler.kv_cache().pool().num_held(), 0);
}

TEST(Scheduler, WithSeveralBatchesInFlightARequestIsInOnlyOneForEachToken) {
  Rig rig(Config(20));
  Sequence a = MakeSequence(0, 4, 3);
  Sequence b = MakeSequence(1, 4, 3);
  rig.scheduler.Enqueue(a);
  Batch first;
  Batch second;
  ASSERT_TRUE(rig.scheduler.Schedule(0, first));
  EXPECT_FALSE(rig.scheduler.Schedule(0, second)) << "nothing to compute before the first token is out";
  rig.scheduler.Enqueue(b);
  ASSERT_TRUE(rig.scheduler.Schedule(0, second));
  EXPECT_THAT(Content(second), ElementsAre(Pair(1, 4)));
  EXPECT_EQ(first.id, 0);
  EXPECT_EQ(second.id, 1);
  rig.scheduler.Complete(first, 1, {});
  ASSERT_TRUE(rig.scheduler.Schedule(1, first));
  EXPECT_THAT(Content(first), ElementsAre(Pair(0, 1)));
  rig.scheduler.Complete(second, 2, {});
  ASSERT_TRUE(rig.scheduler.Schedule(2, second));
  EXPECT_THAT(Content(second), ElementsAre(Pair(1, 1)));
}

// Two chunks of one prompt in flight: a real engine answers when the last one is computed, the reference
// simulator already when the first one comes back.
TEST(Scheduler, ChunksInFlightAreJudgedAsThePolicySays) {
  for (const bool latest : {false, true}) {
    Rig rig(Config(20, 4), {.completion_reads_latest_progress = latest});
    Sequence s = MakeSequence(0, 8, 2);
    rig.scheduler.Enqueue(s);
    Batch first;
    Batch second;
    ASSERT_TRUE(rig.scheduler.Schedule(0, first));
    ASSERT_TRUE(rig.scheduler.Schedule(0, second));
    rig.observer.Take();
    rig.scheduler.Complete(first, 1, {});
    EXPECT_EQ(rig.observer.Take().size(), latest ? 2u : 0u);
  }
}

TEST(Scheduler, PrefillOnlyHandsOverAfterThePrompt) {
  Rig rig(Config(20), {.prefill_only = true});
  Sequence s = MakeSequence(0, 6, 4, 0);
  rig.scheduler.Enqueue(s);
  rig.Step();
  EXPECT_THAT(rig.observer.Take(), ElementsAre("scheduled 0", "prefilled 0", "finished 0"));
  EXPECT_EQ(s.reached, 7);
  EXPECT_TRUE(rig.scheduler.idle());

  Rig decode(Config(20));
  ASSERT_TRUE(decode.scheduler.EnqueuePrefilled(s));
  EXPECT_EQ(s.blocks.size(), 2u) << "six tokens and the next";
  EXPECT_THAT(decode.Step(), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(decode.observer.Take(), ElementsAre("scheduled 0", "token 0"));
}

TEST(Scheduler, EnqueuePrefilledFailsWithoutChangeWhenFull) {
  Rig rig(Config(1));
  Sequence s = MakeSequence(0, 6, 4);
  s.computed = 6;
  s.reached = 7;
  EXPECT_FALSE(rig.scheduler.EnqueuePrefilled(s));
  EXPECT_TRUE(rig.scheduler.idle());
  EXPECT_EQ(s.computed, 6);
}

TEST(Scheduler, RecordedOutputIsHashedAheadOnlyWhereThePolicySaysSo) {
  Rig rig(Config(20), kReferenceSimulatorPolicy);
  Sequence first = MakeSequence(0, 6, 4);
  first.token_ids = Ids(10);
  rig.scheduler.Enqueue(first);
  while (!rig.scheduler.idle()) rig.Step();
  Sequence second = MakeSequence(1, 12, 1, 0);
  rig.scheduler.Enqueue(second);
  rig.Step();
  EXPECT_EQ(second.cached, 8);
}

TEST(Scheduler, RefusesAConfigThatMakesNoScheduler) {
  RecordingObserver observer;
  for (auto [field, config] : std::vector<std::pair<std::string, SchedulerConfig>>{
           {"max_num_seqs", {.max_num_seqs = 0, .num_blocks = 1}},
           {"max_num_batched_tokens", {.max_num_batched_tokens = 0, .num_blocks = 1}},
           {"block_size", {.block_size = -1, .num_blocks = 1}},
           {"num_blocks", {.num_blocks = 0}},
           {"long_prefill_token_threshold", {.num_blocks = 1, .long_prefill_token_threshold = -1}}}) {
    try {
      Scheduler scheduler(config, kRealEnginePolicy, observer);
      ADD_FAILURE() << field;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadInput);
      EXPECT_THAT(error.what(), testing::HasSubstr(field));
    }
  }
}

}  // namespace
}  // namespace plumbline
