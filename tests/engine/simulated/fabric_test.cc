#include "engine/simulated/fabric.h"

#include <gtest/gtest.h>

#include <array>

namespace plumbline {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr std::int64_t kBytesPerNs = 4;

// NPUs in one dimension (or several), links of 4 B/ns and 100 ns, two memories of 2 B/ns and 5 ns.
FabricSpec Spec(const std::vector<std::int64_t>& sizes) {
  FabricSpec spec;
  std::int64_t npus = 1;
  std::vector<std::int32_t> all;
  for (const std::int64_t size : sizes) {
    all.push_back(static_cast<std::int32_t>(all.size()));
    spec.dimensions.push_back({.size = size, .latency_ns = 100, .gib_per_s = kBytesPerNs * 1e9 / kGiB});
    npus *= size;
  }
  spec.num_npus = static_cast<std::int32_t>(npus);
  spec.devices = {{.latency_ns = 5, .bytes_per_ns = 2}, {.latency_ns = 5, .bytes_per_ns = 2}};
  spec.reduce_bytes_per_s = 8e9;
  spec.scopes.assign(static_cast<std::size_t>(npus), {all, all});
  return spec;
}

std::shared_ptr<const Program> Chain(std::vector<Op> ops) {
  auto program = std::make_shared<Program>();
  program->before = std::move(ops);
  return program;
}
Op Compute(std::int64_t ns) {
  return {.kind = OpKind::kCompute, .amount = ns};
}
Op CollectiveOp(Collective collective, std::int64_t bytes) {
  return {.kind = OpKind::kCollective, .collective = collective, .amount = bytes};
}

// When each NPU had finished its program.
std::vector<TimeNs> FinishTimes(Fabric& fabric, std::int32_t npus) {
  std::vector<TimeNs> times(static_cast<std::size_t>(npus), -1);
  const auto note = [&] {
    for (std::int32_t npu = 0; npu < npus; ++npu) {
      TimeNs& time = times[static_cast<std::size_t>(npu)];
      if (time < 0 && fabric.Finished(npu)) time = fabric.now();
    }
  };
  while (fabric.Advance()) note();
  return times;
}

TEST(Fabric, RunsAChainAndItsRepeatedBlock) {
  Fabric fabric(Spec({1}));
  auto program = std::make_shared<Program>();
  program->before = {Compute(10)};
  program->block = {Compute(3), Compute(4)};
  program->repeats = 5;
  program->after = {Compute(100)};
  fabric.Run(0, program);
  EXPECT_EQ(FinishTimes(fabric, 1), std::vector<TimeNs>{10 + 5 * 7 + 100});
  EXPECT_EQ(fabric.FinishedPrograms(0), 1);
}

TEST(Fabric, AQueuedProgramStartsWhenTheOneBeforeHasFinished) {
  Fabric fabric(Spec({1}));
  fabric.Run(0, Chain({Compute(10)}));
  fabric.Run(0, Chain({Compute(7)}));
  EXPECT_EQ(FinishTimes(fabric, 1), std::vector<TimeNs>{17});
  EXPECT_EQ(fabric.FinishedPrograms(0), 2);
}

TEST(Fabric, AMemoryServesOneTransferAfterTheOther) {
  Fabric fabric(Spec({2}));
  const auto load = Chain({{.kind = OpKind::kMemory, .peer = 0, .amount = 20}});
  fabric.Run(0, load);
  fabric.Run(1, load);
  EXPECT_EQ(FinishTimes(fabric, 2), (std::vector<TimeNs>{15, 30}));
}

TEST(Fabric, ALayerWaitsForItsOwnWeights) {
  Fabric fabric(Spec({1}));
  auto program = std::make_shared<Program>();
  program->loads = {{.device = 1, .bytes = 100}, {.device = 1, .bytes = 200}};
  program->before = {{.kind = OpKind::kMemory, .peer = 0, .amount = 20},
                     {.kind = OpKind::kCompute, .amount = 1000, .waits_for_load = 0},
                     {.kind = OpKind::kCompute, .amount = 1, .waits_for_load = 1}};
  fabric.Run(0, program);
  // First load ends at 55, its layer at 1055, by when the second load (160) is long there.
  EXPECT_EQ(FinishTimes(fabric, 1), std::vector<TimeNs>{1056});
}

TEST(Fabric, SendAndReceiveEndWhenTheBytesHaveArrived) {
  Fabric fabric(Spec({2}));
  fabric.Run(0, Chain({Compute(50), {.kind = OpKind::kSend, .peer = 1, .amount = 400}}));
  fabric.Run(1, Chain({{.kind = OpKind::kReceive, .peer = 0, .amount = 400}, Compute(1)}));
  EXPECT_EQ(FinishTimes(fabric, 2), (std::vector<TimeNs>{250, 251}));
}

TEST(Fabric, ALateReceiveEndsAtOnce) {
  Fabric fabric(Spec({2}));
  fabric.Run(0, Chain({{.kind = OpKind::kSend, .peer = 1, .amount = 400}}));
  fabric.Run(1, Chain({Compute(1000), {.kind = OpKind::kReceive, .peer = 0, .amount = 400}}));
  EXPECT_EQ(FinishTimes(fabric, 2), (std::vector<TimeNs>{200, 1000}));
}

TEST(Fabric, BackgroundSendsOverlapWithComputeOneAtATime) {
  Fabric fabric(Spec({2}));
  const Op send{.kind = OpKind::kBackgroundSend, .peer = 1, .amount = 400};
  const Op receive{.kind = OpKind::kReceive, .peer = 0, .amount = 400};
  fabric.Run(0, Chain({send, Compute(10), send, Compute(10)}));
  fabric.Run(1, Chain({receive, receive}));
  EXPECT_EQ(FinishTimes(fabric, 2), (std::vector<TimeNs>{400, 400}));
}

// n ranks that start together, S bytes: the closed forms of the ring algorithms.
TEST(Fabric, RingCollectivesTakeTheTimeOfTheirClosedForm) {
  for (const std::int64_t n : {2, 3, 4}) {
    const std::int64_t bytes = 4800;
    const auto run = [&](Collective collective) {
      Fabric fabric(Spec({n}));
      for (std::int32_t npu = 0; npu < n; ++npu) fabric.Run(npu, Chain({CollectiveOp(collective, bytes)}));
      const auto times = FinishTimes(fabric, static_cast<std::int32_t>(n));
      for (const TimeNs time : times) EXPECT_EQ(time, times[0]);
      return times[0];
    };
    const TimeNs part = 100 + bytes / n / kBytesPerNs;
    const TimeNs reduce = 3 * (bytes / n / 8);
    const TimeNs whole = 100 + bytes / kBytesPerNs;
    EXPECT_EQ(run(Collective::kAllReduce), 10 + 2 * (n - 1) * (part + 10) + (n - 1) * reduce);
    EXPECT_EQ(run(Collective::kReduceScatter), 10 + (n - 1) * (part + 10 + reduce));
    EXPECT_EQ(run(Collective::kAllGather), 10 + (n - 1) * (whole + 10));
  }
}

// Whatever the ranks' distance: alike, within a message, beyond it, and either one first.
TEST(Fabric, AnAllReduceOfTwoInOneGoEndsWhenTheRingWouldEnd) {
  for (const std::int64_t late : {0, 1, 37, 699, 700, 701, 5000}) {
    for (const int first : {0, 1}) {
      std::array<std::vector<TimeNs>, 2> times;
      for (const bool in_one_go : {false, true}) {
        FabricSpec spec = Spec({2});
        spec.only_ends_matter = in_one_go;
        Fabric fabric(spec);
        const Op reduce = CollectiveOp(Collective::kAllReduce, 4800);
        fabric.Run(first, Chain({Compute(1), reduce, Compute(3), reduce}));
        fabric.Run(1 - first, Chain({Compute(1 + late), reduce, Compute(3), reduce}));
        times[in_one_go ? 1 : 0] = FinishTimes(fabric, 2);
      }
      EXPECT_EQ(times[0], times[1]) << late << " " << first;
    }
  }
}

TEST(Fabric, ACollectiveWaitsForTheLastRank) {
  Fabric fabric(Spec({2}));
  fabric.Run(0, Chain({CollectiveOp(Collective::kAllGather, 400)}));
  fabric.Run(1, Chain({Compute(5000), CollectiveOp(Collective::kAllGather, 400)}));
  const auto times = FinishTimes(fabric, 2);
  EXPECT_EQ(times[0], 5000 + 10 + 200 + 10);
  EXPECT_EQ(times[1], 5000 + 10 + 10) << "its peer's message was there already";
}

TEST(Fabric, OverTwoDimensionsAnAllReduceScattersReducesAndGathers) {
  Fabric fabric(Spec({2, 2}));
  const std::int64_t bytes = 4800;
  for (std::int32_t npu = 0; npu < 4; ++npu)
    fabric.Run(npu, Chain({CollectiveOp(Collective::kAllReduce, bytes)}));
  const TimeNs scatter = 10 + (100 + bytes / 2 / 4 + 10 + 3 * (bytes / 2 / 8));
  const TimeNs reduce = 10 + 2 * (100 + bytes / 4 / 4 + 10) + 3 * (bytes / 4 / 8);
  const TimeNs gather = 10 + (100 + bytes / 2 / 4 + 10);
  EXPECT_EQ(FinishTimes(fabric, 4), std::vector<TimeNs>(4, scatter + reduce + gather));
}

TEST(Fabric, ACollectiveBesideAComputeEndsWithTheLongerOne) {
  for (const std::int64_t compute : {50, 5000}) {
    Fabric fabric(Spec({2}));
    Op both = CollectiveOp(Collective::kAllGather, 400);
    both.kind = OpKind::kCollectiveAndCompute;
    both.compute_ns = compute;
    fabric.Run(0, Chain({both}));
    fabric.Run(1, Chain({CollectiveOp(Collective::kAllGather, 400)}));
    EXPECT_EQ(FinishTimes(fabric, 2)[0], std::max<TimeNs>(220, compute));
  }
}

TEST(Fabric, ACollectiveAmongOneIsNothing) {
  Fabric fabric(Spec({1}));
  fabric.Run(0, Chain({CollectiveOp(Collective::kAllReduce, 400), Compute(3)}));
  EXPECT_EQ(FinishTimes(fabric, 1), std::vector<TimeNs>{3});
}

}  // namespace
}  // namespace plumbline
