#include "engine/simulated/cluster_simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

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

// Two instances with a host memory of 50 bytes a ns; a prompt of 600 equal tokens, asked of each in turn.
RowCollector SimulateTwoInstances(SimulationOptions options, TokenId second_token = 1) {
  ClusterSpec cluster = OneInstance();
  cluster.nodes[0].gb_per_s = 50;
  cluster.instances.push_back(cluster.instances[0]);
  const auto asked = [](RequestId id, TokenId token) {
    SimulationRequest request = Asked(id, 600, 1, id * 100 * kMs);
    request.token_ids.assign(600, token);
    return request;
  };
  return Simulate(cluster, {asked(0, 1), asked(1, second_token)}, options);
}

TEST(ClusterSimulation, ASharedLowerTierServesWhatAnotherInstanceComputed) {
  SimulationOptions options;
  options.prefix_storage = PrefixStorage::kCpu;
  EXPECT_EQ(SimulateTwoInstances(options).rows[1].ttft_ns - SimulateTwoInstances({}).rows[1].ttft_ns, 0)
      << "a tier of its own does not know the prompt";
  options.prefix_sharing = true;
  EXPECT_EQ(SimulateTwoInstances(options, 2).rows[1].ttft_ns, SimulateTwoInstances({}, 2).rows[1].ttft_ns);
  const TimeNs served = SimulateTwoInstances(options).rows[1].ttft_ns;
  const TimeNs computed = SimulateTwoInstances({}).rows[1].ttft_ns;
  // 512 tokens less to compute in two blocks and to bring in, two chunks of KV to recall: a token's keys and
  // values are 2 * 64 * 2 layers * 2 bytes.
  const TimeNs less_computed = 2 * 10 * 512;
  const TimeNs recall = 512 * (2 * 64 * 2 * 2) / 50;
  const TimeNs less_input = 600 * 4 / 50 - 88 * 4 / 50;
  const TimeNs less_output = 600 * 4 / 50 - 88 * 4 / 50;
  EXPECT_EQ(computed - served, less_computed - recall + less_input + less_output);
}

TEST(ClusterSimulation, ARecallIsNotedAsUnverified) {
  ClusterSpec cluster = OneInstance();
  SimulationOptions options;
  options.prefix_storage = PrefixStorage::kCpu;
  options.routing = RequestRouting::kRandom;
  RowCollector collector;
  EXPECT_THAT(ClusterSimulation(cluster, options, collector).Unverified(),
              ElementsAre("request routing RAND"));
}

TEST(ClusterSimulation, ACxlTierNeedsCxlMemory) {
  ClusterSpec cluster = OneInstance();
  SimulationOptions options;
  options.prefix_storage = PrefixStorage::kCxl;
  RowCollector collector;
  EXPECT_THROW(ClusterSimulation(cluster, options, collector), Error);
  cluster.num_cxl_devices = 1;
  cluster.cxl_gib = 1;
  cluster.cxl = {.latency_ns = 0, .bytes_per_ns = 1};
  ClusterSimulation accepted(cluster, options, collector);
}

TEST(ClusterSimulation, RandomRoutingDrawsPythonsLots) {
  ClusterSpec cluster = OneInstance();
  cluster.instances.resize(5, cluster.instances[0]);
  SimulationOptions options;
  options.routing = RequestRouting::kRandom;
  std::vector<SimulationRequest> requests;
  for (RequestId id = 0; id < 8; ++id) requests.push_back(Asked(id, 5, 1, (id + 1) * 10 * kMs));
  // random.Random(42).randrange(5), eight times
  EXPECT_THAT(Simulate(cluster, std::move(requests), options).instances, ElementsAre(0, 0, 2, 1, 1, 1, 0, 4));
}

// Requests come one by one, as from outside, and nobody keeps their rows.
class ForgetRows : public SimulationListener {
 public:
  void OnRow(std::int64_t, SimulatedRow, TimeNs) override { ++rows; }
  std::int64_t rows = 0;
};

TEST(ClusterSimulation, FinishedRequestsTakeNoMemory) {
  const ClusterSpec cluster = OneInstance();
  ForgetRows rows;
  ClusterSimulation simulation(cluster, {.open_ended = true}, rows);
  const auto serve_up_to = [&](RequestId end) {
    while (rows.rows < end) {
      SimulationRequest request = Asked(rows.rows, 40, 20, simulation.now());
      request.token_ids.assign(60, static_cast<TokenId>(rows.rows % 100));
      simulation.Add({request});
      while (simulation.Turn()) {
      }
    }
    return mallinfo2().uordblks;
  };
  const std::size_t after_some = serve_up_to(200);
  const std::size_t after_many = serve_up_to(5000);
  EXPECT_LT(after_many, after_some + 20'000) << "bytes for 4,800 requests more";
}

TEST(ClusterSimulation, ATierCanBeReadByAllThatShareItOnlyInEqualBlocks) {
  ClusterSpec cluster = OneInstance();
  cluster.instances.push_back(cluster.instances[0]);
  cluster.instances[1].scheduler.block_size = 8;
  SimulationOptions options;
  options.prefix_storage = PrefixStorage::kCpu;
  RowCollector collector;
  ClusterSimulation apart(cluster, options, collector);
  options.prefix_sharing = true;
  try {
    ClusterSimulation together(cluster, options, collector);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("instance 1: block_size"));
  }
}

TEST(ClusterSimulation, APrefilledRequestThatWaitsForRoomIsNoted) {
  ClusterSpec cluster = OneInstance();
  cluster.instances[0].role = Role::kPrefill;
  cluster.instances.push_back(cluster.instances[0]);
  cluster.instances[1].role = Role::kDecode;
  cluster.instances[1].num_gpu_blocks = 11;
  RowCollector collector;
  ClusterSimulation simulation(cluster, {}, collector);
  simulation.Add({Asked(0, 20, 20), Asked(1, 20, 20)});
  while (simulation.Turn()) {
  }
  EXPECT_EQ(collector.rows.size(), 2u);
  EXPECT_THAT(simulation.Unverified(), ElementsAre(HasSubstr("waited for room")));
}

TEST(ClusterSimulation, EachRankOfAGroupComputesItsOwnExperts) {
  // Round robin leaves all tokens to the first half of the experts: the second member has none to wait for.
  ClusterSpec cluster = OneInstance();
  cluster.link_latency_ns = {0};
  cluster.link_gib_per_s = {1e9};
  cluster.instances[0].model = TinyMoeModel();
  cluster.instances[0].dp_group = "g";
  cluster.instances[0].ep = 2;
  cluster.instances.push_back(cluster.instances[0]);
  const auto ttft = [&](ExpertRouting routing) {
    for (InstanceSpec& instance : cluster.instances) instance.expert_routing = routing;
    return Simulate(cluster, {Asked(0, 100, 1)}).rows[0].ttft_ns;
  };
  // 100 tokens against the 75 that an even gate sends to a rank, 7 ns each in two blocks.
  EXPECT_EQ(ttft(ExpertRouting::kRoundRobin) - ttft(ExpertRouting::kBalanced), 2 * 7 * 25);
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
