#include "engine/simulated/program_builder.h"

#include <gtest/gtest.h>

#include "simulated_testing.h"

namespace plumbline {
namespace {

// Attention takes what its chunk and context add up to, in ns, where there is no decode; 1000 with one.
std::shared_ptr<ProfileBundle> ProfileWith(const CostModel& cost_model) {
  auto profile = TinyProfile();
  profile->cost_model = cost_model;
  std::vector<AttentionTable::Point> points;
  for (const std::int64_t chunk : {1, 1000}) {
    for (const std::int64_t context : {0, 1000}) {
      points.push_back(
          {.prefill_chunk = chunk, .kv_prefill = context, .time_ns = static_cast<double>(chunk + context)});
    }
  }
  points.push_back({.n_decode = 1, .kv_decode = 1, .time_ns = 1000});
  profile->by_tp.at(1).attention = AttentionTable(points);
  return profile;
}

// A prompt's end of 20 tokens, the middle of another's, and a decode.
Batch MixedBatch() {
  Batch batch;
  const auto add = [&batch](std::int64_t context, std::int32_t tokens, bool samples) {
    BatchEntry& entry = batch.entries.emplace_back();
    entry.first_position = context;
    entry.num_tokens = tokens;
    entry.samples = samples;
  };
  add(100, 20, true);
  add(0, 30, false);
  add(7, 1, true);
  batch.total_tokens = 51;
  batch.prefill_tokens = 50;
  batch.prefill_context = 100;
  batch.num_prefills = 2;
  batch.num_decodes = 1;
  batch.decode_context_sum = batch.decode_context_max = batch.decode_context_min = 7;
  return batch;
}

// All that the one NPU computes.
std::int64_t ComputeNs(const CostModel& cost_model, const Batch& batch) {
  ClusterSpec cluster = OneInstance();
  cluster.instances[0].profile = ProfileWith(cost_model);
  const ClusterPlan plan = PlanCluster(cluster);
  const ProgramBuilder builder(cluster.instances[0], plan.instances[0], plan);
  const auto programs = builder.Build(FiguresOf(batch, cost_model));
  EXPECT_EQ(programs.size(), 1u);
  std::int64_t sum = 0;
  const auto add = [&sum](const std::vector<Op>& ops, std::int64_t times) {
    for (const Op& op : ops) sum += op.kind == OpKind::kCompute ? times * op.amount : 0;
  };
  add(programs[0]->before, 1);
  add(programs[0]->block, programs[0]->repeats);
  add(programs[0]->after, 1);
  return sum;
}

// Two blocks of o_proj at 10 ns a token, and the head at 100 ns a sequence.
constexpr std::int64_t kDense = 2 * 51 * 10;

TEST(ProgramBuilder, PoolsPrefillsAndCountsAllSequencesAsTheReferenceDoes) {
  // The pooled chunk of 50 behind 100 has no slice with a decode: the nearest pairs are blended.
  const std::int64_t with_head_of_three = ComputeNs({}, MixedBatch());
  Batch batch = MixedBatch();
  batch.entries[1].samples = true;
  EXPECT_EQ(ComputeNs({}, batch), with_head_of_three) << "who samples does not matter";
}

TEST(ProgramBuilder, SumsTheAttentionOfEachPrefillAndOfTheDecodes) {
  const std::int64_t attention = 2 * ((20 + 100) + (30 + 0) + 1000);
  EXPECT_EQ(ComputeNs({.sums_attention = true}, MixedBatch()), attention + kDense + 300);
}

TEST(ProgramBuilder, CountsOnlySampledRequestsInTheHead) {
  const CostModel both = {.per_sequence_counts_sampled = true, .sums_attention = true};
  const std::int64_t without_head = 2 * ((20 + 100) + (30 + 0) + 1000) + kDense;
  EXPECT_EQ(ComputeNs(both, MixedBatch()), without_head + 200);
  Batch batch = MixedBatch();
  for (BatchEntry& entry : batch.entries) entry.samples = false;
  EXPECT_EQ(ComputeNs(both, batch), without_head) << "nothing is sampled: no head";
}

TEST(ProgramBuilder, AddsTheFixedCostOncePerStep) {
  const std::int64_t plain = ComputeNs({}, MixedBatch());
  EXPECT_EQ(ComputeNs({.fixed_step_ns = 12345}, MixedBatch()), plain + 12345);
}

}  // namespace
}  // namespace plumbline
