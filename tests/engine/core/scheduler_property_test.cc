#include <gtest/gtest.h>
#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "engine/core/scheduler.h"
#include "scheduler_testing.h"

namespace plumbline {
namespace {

int Between(std::mt19937& random, int least, int most) {
  return std::uniform_int_distribution(least, most)(random);
}

// First-come-first-served: a request is first scheduled only when all that came before it have been.
class OrderObserver final : public SchedulerObserver {
 public:
  void OnScheduled(const Sequence& s, TimeNs) override {
    if (std::find(first_scheduled.begin(), first_scheduled.end(), s.id) == first_scheduled.end()) {
      first_scheduled.push_back(s.id);
    }
  }
  void OnPreempted(const Sequence& s, TimeNs) override {
    EXPECT_TRUE(s.blocks.empty());
    ++preemptions;
  }
  void OnPrefillDone(const Sequence&, TimeNs) override {}
  void OnToken(const Sequence& s, TimeNs, const TokenId*) override { ++tokens[s.id]; }
  void OnFinished(Sequence& s, TimeNs) override { EXPECT_EQ(tokens[s.id], s.output_toks); }

  std::vector<RequestId> first_scheduled;
  std::map<RequestId, std::int64_t> tokens;
  int preemptions = 0;
};

struct RandomCase {
  SchedulerConfig config;
  std::vector<std::unique_ptr<Sequence>> requests;  // in order of arrival
};

// Small caches and prompts out of few first tokens, so that preemptions and prefix hits are common.
RandomCase MakeCase(std::mt19937& random) {
  RandomCase made;
  SchedulerConfig& config = made.config;
  config.block_size = Between(random, 1, 5);
  config.num_blocks = Between(random, 4, 40);
  config.max_num_seqs = Between(random, 1, 6);
  config.max_num_batched_tokens = Between(random, 1, 40);
  config.long_prefill_token_threshold = Between(random, 0, 1) * Between(random, 1, 10);
  config.enable_prefix_caching = Between(random, 0, 3) > 0;
  config.reserve_full_isl = Between(random, 0, 1) == 0;
  const int fits = static_cast<int>(config.block_size * config.num_blocks);
  TimeNs arrival = 0;
  for (int count = Between(random, 1, 8), id = 0; id < count; ++id) {
    const int input = Between(random, 1, std::max(1, fits - 3));
    const int output = Between(random, 1, std::min(12, fits - input + 1));
    arrival += Between(random, 0, 4);
    made.requests.push_back(
        std::make_unique<Sequence>(MakeSequence(id, input, output, Between(random, 0, 3) - 1, arrival)));
  }
  return made;
}

// Every block is held exactly as often as the requests list it; all others are free.
void ExpectHoldersExact(const Scheduler& scheduler, const std::vector<std::unique_ptr<Sequence>>& requests) {
  const BlockPool& pool = scheduler.kv_cache().pool();
  std::vector<std::int32_t> holders(static_cast<std::size_t>(pool.num_blocks()));
  for (const auto& request : requests) {
    for (const BlockId block : request->blocks) ++holders[static_cast<std::size_t>(block)];
  }
  std::int64_t held = 0;
  bool exact = true;
  for (BlockId block = 0; block < pool.num_blocks(); ++block) {
    const std::int32_t expected = holders[static_cast<std::size_t>(block)];
    exact = exact && pool.holders(block) == expected;
    if (expected > 0) ++held;
  }
  ASSERT_TRUE(exact) << "a block was leaked or freed too often";
  ASSERT_EQ(pool.num_held(), held);
}

void ExpectBatchWithinLimits(const Scheduler& scheduler, const Batch& batch) {
  const SchedulerConfig& config = scheduler.config();
  std::int64_t total = 0;
  std::map<RequestId, int> seen;
  for (const BatchEntry& entry : batch.entries) {
    ASSERT_GT(entry.num_tokens, 0);
    ASSERT_EQ(++seen[entry.request_id], 1);
    ASSERT_GE(static_cast<std::int64_t>(entry.sequence->blocks.size()) * config.block_size,
              entry.first_position + entry.num_tokens);
    total += entry.num_tokens;
  }
  ASSERT_EQ(total, batch.total_tokens);
  ASSERT_LE(total, config.max_num_batched_tokens);
  ASSERT_LE(static_cast<std::int64_t>(scheduler.running().size()), config.max_num_seqs);
}

// Runs one case to its end, with a request cancelled now and then. Returns the number of preemptions.
int RunCase(std::mt19937& random) {
  RandomCase made = MakeCase(random);
  OrderObserver observer;
  Scheduler scheduler(made.config, kRealEnginePolicy, observer);
  for (const auto& request : made.requests) scheduler.Enqueue(*request);
  Batch batch;
  std::vector<TokenId> sampled;
  std::vector<RequestId> removed;
  int steps = 0;
  for (TimeNs now = 0; !scheduler.idle() && !testing::Test::HasFatalFailure(); ++now) {
    if (++steps > 20000) {
      ADD_FAILURE() << "the schedule does not end";
      return 0;
    }
    const bool started = scheduler.Schedule(now, batch);
    ExpectBatchWithinLimits(scheduler, batch);
    ExpectHoldersExact(scheduler, made.requests);
    if (Between(random, 0, 30) == 0) {
      Sequence& victim = *made.requests[static_cast<std::size_t>(
          Between(random, 0, static_cast<int>(made.requests.size()) - 1))];
      if (victim.state != SequenceState::kFinished) {
        scheduler.Remove(victim);
        removed.push_back(victim.id);
      }
    }
    if (!started) continue;
    sampled.resize(batch.entries.size());
    for (TokenId& token : sampled) token = Between(random, 0, 3);
    scheduler.Complete(batch, now, sampled);
    ExpectHoldersExact(scheduler, made.requests);
  }
  EXPECT_EQ(scheduler.kv_cache().pool().num_held(), 0);
  EXPECT_TRUE(std::is_sorted(observer.first_scheduled.begin(), observer.first_scheduled.end()));
  for (const auto& request : made.requests) {
    EXPECT_EQ(request->state, SequenceState::kFinished);
    if (std::find(removed.begin(), removed.end(), request->id) == removed.end()) {
      EXPECT_EQ(observer.tokens[request->id], request->output_toks);
    }
  }
  return observer.preemptions;
}

TEST(SchedulerProperty, TenThousandRandomSchedulesKeepTheRules) {
  int with_preemptions = 0;
  for (unsigned seed = 0; seed < 10000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    if (RunCase(random) > 0) ++with_preemptions;
    if (HasFailure()) return;
  }
  EXPECT_GT(with_preemptions, 1000) << "the cases are too easy to mean anything";
}

}  // namespace
}  // namespace plumbline
