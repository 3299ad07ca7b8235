#include "engine/simulated/cluster_simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "simulated_testing.h"

namespace plumbline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr TimeNs kMs = 1'000'000;

RowCollector Simulate(const ClusterSpec& cluster, std::vector<SimulationRequest> requests,
                      SimulationOptions options = {}) {
  RowCollector collector;
  ClusterSimulation simulation(cluster, options, collector);
  simulation.Add(std::move(requests));
  while (simulation.Turn()) {
  }
  return collector;
}

// One block of the tiny model takes 50 + 10 a token, the head 100 a sequence; two blocks.
TimeNs StepNs(std::int64_t tokens, std::int64_t sequences) {
  return 2 * (50 + 10 * tokens) + 100 * sequences;
}

TEST(ClusterSimulation, OneRequestTakesTheSumOfItsSteps) {
  const RowCollector run = Simulate(OneInstance(), {Asked(0, 5, 3, 2000)});
  ASSERT_EQ(run.rows.size(), 1u);
  const SimulatedRow& row = run.rows[0];
  EXPECT_EQ(row.queuing_delay_ns, 0) << "the first arrival is when the simulation begins";
  EXPECT_EQ(row.ttft_ns, StepNs(5, 1));
  EXPECT_THAT(row.itl_ns, ElementsAre(StepNs(1, 1), StepNs(1, 1)));
  EXPECT_EQ(row.LatencyNs(), StepNs(5, 1) + 2 * StepNs(1, 1));
  EXPECT_EQ(row.TpotNs(), StepNs(1, 1));
}

TEST(ClusterSimulation, AnIdleClusterLooksEveryMillisecond) {
  const RowCollector run = Simulate(OneInstance(), {Asked(0, 5, 1, 2000), Asked(1, 5, 1, 5 * kMs)});
  // The first ends at 2000 + step; from there the cluster looks in steps of 1 ms.
  const TimeNs first_end = 2000 + StepNs(5, 1);
  EXPECT_EQ(run.rows[1].queuing_delay_ns, first_end);
}

TEST(ClusterSimulation, ALongIdleTimeIsPassedOverButHeartbeatsGoOn) {
  const RowCollector run = Simulate(OneInstance(), {Asked(0, 5, 1, 2000), Asked(1, 5, 1, 100'000 * kMs)});
  EXPECT_EQ(run.beats.size(), 100u);
  EXPECT_LT(run.rows[1].queuing_delay_ns, kMs);
}

TEST(ClusterSimulation, LoadRoutingTakesTheEmptierInstance) {
  ClusterSpec cluster = OneInstance();
  cluster.instances.push_back(cluster.instances[0]);
  const RowCollector run =
      Simulate(cluster, {Asked(0, 5, 3), Asked(1, 5, 3), Asked(2, 5, 3), Asked(3, 5, 3)});
  ASSERT_EQ(run.rows.size(), 4u);
  EXPECT_THAT(run.instances, testing::UnorderedElementsAre(0, 0, 1, 1));
}

TEST(ClusterSimulation, TensorRanksMeetInEachAllReduce) {
  ClusterSpec cluster = OneInstance();
  cluster.instances[0].tp = 2;
  const TimeNs one = Simulate(OneInstance(), {Asked(0, 5, 2)}).rows[0].LatencyNs();
  const TimeNs two = Simulate(cluster, {Asked(0, 5, 2)}).rows[0].LatencyNs();
  // Two steps of two blocks of one all-reduce of two messages of at least 1000 ns.
  EXPECT_GT(two, one + 2 * 2 * 2 * 1000);
}

TEST(ClusterSimulation, ASessionsNextTurnComesAfterItsTool) {
  std::vector<SimulationRequest> requests = {Asked(0, 5, 2, 1000), Asked(1, 7, 2, 1000),
                                             Asked(2, 5, 2, 1000)};
  for (SimulationRequest& request : requests) {
    request.session = 9;
    request.tool_duration_ns = 3 * kMs;
  }
  const RowCollector run = Simulate(OneInstance(), requests);
  ASSERT_EQ(run.rows.size(), 3u);
  EXPECT_EQ(run.rows[1].arrival_ns, run.rows[0].end_ns + 3 * kMs);
  EXPECT_EQ(run.rows[2].arrival_ns, run.rows[1].end_ns + 3 * kMs);
}

TEST(ClusterSimulation, PrefillAndDecodeAreSplit) {
  ClusterSpec cluster = OneInstance();
  cluster.instances.push_back(cluster.instances[0]);
  cluster.instances[0].role = Role::kPrefill;
  cluster.instances[1].role = Role::kDecode;
  const RowCollector run = Simulate(cluster, {Asked(0, 5, 3), Asked(1, 9, 2)});
  ASSERT_EQ(run.rows.size(), 2u);
  EXPECT_THAT(run.instances, ElementsAre(1, 1)) << "requests end on the decode side";
  for (const SimulatedRow& row : run.rows) {
    EXPECT_EQ(row.itl_ns.size(), static_cast<std::size_t>(row.output_toks - 1));
  }
}

TEST(ClusterSimulation, DataParallelMembersRunInRounds) {
  ClusterSpec cluster = OneInstance();
  cluster.instances[0].model = TinyMoeModel();
  cluster.instances[0].ep = 2;
  cluster.instances[0].dp_group = "A";
  cluster.instances.push_back(cluster.instances[0]);
  const RowCollector run = Simulate(cluster, {Asked(0, 50, 3)});
  ASSERT_EQ(run.rows.size(), 1u) << "the other member has nothing and computes along";
  EXPECT_EQ(run.rows[0].itl_ns.size(), 2u);
}

TEST(ClusterSimulation, PreemptsAndFinishesAllTheSame) {
  ClusterSpec cluster = OneInstance();
  const InstancePlan plan = PlanCluster(cluster).instances[0];
  // Memory for the weights and six blocks.
  cluster.instances[0].npu_mem_util = 1;
  cluster.instances[0].npu_mem_gib =
      static_cast<double>(plan.weight_bytes + 6 * plan.kv_bytes_per_block) / (1024.0 * 1024 * 1024) + 1e-12;
  RowCollector collector;
  ClusterSimulation simulation(cluster, {}, collector);
  simulation.Add({Asked(0, 8, 9), Asked(1, 8, 9)});
  while (simulation.Turn()) {
  }
  EXPECT_EQ(collector.rows.size(), 2u);
  EXPECT_GT(simulation.Totals().preemptions, 0);
  EXPECT_EQ(simulation.Totals().generated_tokens, 18);
}

TEST(ClusterSimulation, RefusesARequestThatNeverFitsAndSaysWhich) {
  ClusterSpec cluster = OneInstance();
  cluster.instances[0].npu_mem_gib = 0.0008;
  RowCollector collector;
  ClusterSimulation simulation(cluster, {}, collector);
  try {
    simulation.Add({Asked(0, 5, 5), Asked(17, 1'000'000, 5)});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("request 17: 1000000 prompt + 5 output tokens can never fit"));
  }
}

TEST(ClusterSimulation, NothingToDoIsNoTurn) {
  RowCollector collector;
  const ClusterSpec cluster = OneInstance();
  ClusterSimulation simulation(cluster, {}, collector);
  EXPECT_FALSE(simulation.Turn());
  EXPECT_EQ(simulation.NextTurn(), std::nullopt);
}

TEST(ClusterSimulation, WarnsOfLayersWithoutTimes) {
  ClusterSpec cluster = OneInstance();
  auto architecture = TinyArchitecture();
  architecture->post_attention.push_back({.name = "act_fn", .kind = LayerKind::kDense});
  cluster.instances[0].architecture = architecture;
  RowCollector collector;
  EXPECT_THAT(ClusterSimulation(cluster, {}, collector).Warnings(), ElementsAre(HasSubstr("act_fn")));
}

TEST(ClusterSimulation, ALowerTierIsAcceptedUntilItWouldBeReadFrom) {
  ClusterSpec cluster = OneInstance();
  cluster.instances.push_back(cluster.instances[0]);
  const auto asked = [](RequestId id, TokenId first) {
    SimulationRequest request = Asked(id, 600, 1, id * 100 * kMs);
    request.token_ids.assign(600, first);
    return request;
  };
  SimulationOptions options;
  options.prefix_storage = PrefixStorage::kCpu;
  // The second request goes to the other instance, whose device has not seen the prompt.
  EXPECT_EQ(Simulate(cluster, {asked(0, 1), asked(1, 1)}, options).rows.size(), 2u) << "a tier an instance";
  options.prefix_sharing = true;
  EXPECT_EQ(Simulate(cluster, {asked(0, 1), asked(1, 2)}, options).rows.size(), 2u);
  try {
    Simulate(cluster, {asked(0, 1), asked(1, 1)}, options);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("request 1"));
  }
}

TEST(ClusterSimulation, RefusesADegreeThatWasNotProfiled) {
  ClusterSpec cluster = OneInstance();
  cluster.instances[0].tp = 4;
  RowCollector collector;
  try {
    ClusterSimulation(cluster, {}, collector);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("accepted: tp1, tp2, tp3"));
  }
}

}  // namespace
}  // namespace plumbline
