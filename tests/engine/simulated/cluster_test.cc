#include "engine/simulated/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "simulated_testing.h"

namespace plumbline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> Sizes(const ClusterPlan& plan) {
  std::vector<std::int64_t> sizes;
  for (const NetworkDimension& dimension : plan.fabric.dimensions) sizes.push_back(dimension.size);
  return sizes;
}

std::string ErrorOf(const ClusterSpec& cluster) {
  try {
    PlanCluster(cluster);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    return error.what();
  }
}

TEST(PlanCluster, OneNpuNeedsNoNetwork) {
  const ClusterPlan plan = PlanCluster(OneInstance());
  EXPECT_TRUE(plan.fabric.dimensions.empty());
  EXPECT_EQ(plan.instances[0].start_npu, plan.instances[0].end_npu);
}

TEST(PlanCluster, BlocksAreWhatWeightsLeave) {
  // Llama-3.1-8B in bf16 on 24 GiB at 0.833919: 16,060,522,496 bytes of weights, 2588 blocks.
  ClusterSpec cluster = OneInstance();
  auto model = std::make_shared<ModelShape>();
  *model = {.name = "llama",
            .model_type = "llama",
            .torch_dtype = "bfloat16",
            .hidden_size = 4096,
            .num_layers = 32,
            .num_heads = 32,
            .num_kv_heads = 8,
            .head_dim = 128,
            .vocab_size = 128256,
            .intermediate_size = 14336,
            .moe_intermediate_size = 14336,
            .max_position_embeddings = 131072};
  cluster.instances[0].model = model;
  cluster.instances[0].npu_mem_gib = 24;
  cluster.instances[0].npu_mem_util = 0.833919;
  cluster.instances[0].scheduler.block_size = 16;
  const InstancePlan plan = PlanCluster(cluster).instances[0];
  EXPECT_EQ(plan.weight_bytes, 16'060'522'496);
  EXPECT_EQ(plan.scheduler.num_blocks, 2588);
  EXPECT_EQ(plan.kv_bytes_per_block, 2 * 8 * 128 * 32 * 2 * 16);
}

TEST(PlanCluster, DimensionsFollowFromShapeAndRoles) {
  ClusterSpec tensor = OneInstance();
  tensor.instances[0].tp = 2;
  EXPECT_THAT(Sizes(PlanCluster(tensor)), ElementsAre(2));

  ClusterSpec stages = OneInstance();
  stages.instances[0].tp = 2;
  stages.instances[0].pp = 2;
  EXPECT_THAT(Sizes(PlanCluster(stages)), ElementsAre(2, 2));

  ClusterSpec two = OneInstance();
  two.instances.push_back(two.instances[0]);
  EXPECT_THAT(Sizes(PlanCluster(two)), ElementsAre(1, 2));

  ClusterSpec split = two;
  split.instances[0].role = Role::kPrefill;
  split.instances[1].role = Role::kDecode;
  const ClusterPlan plan = PlanCluster(split);
  EXPECT_THAT(Sizes(plan), ElementsAre(1, 3));
  EXPECT_EQ(plan.instances[0].end_npu, 1) << "a prefill instance has its receive half";
  EXPECT_EQ(plan.instances[1].start_npu, 2);

  ClusterSpec group = two;
  for (InstanceSpec& instance : group.instances) instance.dp_group = "A";
  group.instances[0].tp = group.instances[1].tp = 2;
  EXPECT_THAT(Sizes(PlanCluster(group)), ElementsAre(2, 2));
}

TEST(PlanCluster, ExpertsOfAGroupReachOverItsMembersNotOverStages) {
  ClusterSpec cluster = OneInstance();
  cluster.instances[0].model = TinyMoeModel();
  cluster.instances[0].pp = 2;
  cluster.instances[0].ep = 2;
  cluster.instances[0].dp_group = "A";
  cluster.instances.push_back(cluster.instances[0]);
  const ClusterPlan plan = PlanCluster(cluster);
  EXPECT_THAT(Sizes(plan), ElementsAre(1, 2, 2));
  EXPECT_THAT(plan.fabric.scopes[0][static_cast<std::size_t>(Scope::kExpert)], ElementsAre(2));
  EXPECT_EQ(plan.instances[0].local_ep, 1);
}

TEST(PlanCluster, RefusesClustersThatContradictThemselves) {
  ClusterSpec cluster = OneInstance();
  cluster.instances[0].pp = 100;
  EXPECT_THAT(ErrorOf(cluster), HasSubstr("exceeds the model's 2 layers"));

  cluster = OneInstance();
  cluster.instances[0].model = TinyMoeModel();
  cluster.instances[0].tp = cluster.instances[0].ep = 3;
  EXPECT_THAT(ErrorOf(cluster), HasSubstr("does not divide the model's 8 experts"));

  cluster.instances[0].tp = 1;
  cluster.instances[0].ep = 2;
  EXPECT_THAT(ErrorOf(cluster), HasSubstr("needs a dp_group"));

  cluster = OneInstance();
  cluster.instances[0].dp_group = "A";
  cluster.instances.push_back(cluster.instances[0]);
  cluster.instances[1].tp = 2;
  EXPECT_THAT(ErrorOf(cluster), HasSubstr("differ in tp_size"));

  cluster = OneInstance();
  cluster.instances.push_back(cluster.instances[0]);
  cluster.instances[1].tp = 2;
  EXPECT_THAT(ErrorOf(cluster), HasSubstr("do not fill a regular network"));

  cluster = OneInstance();
  cluster.instances[0].npu_mem_gib = 1e-9;
  EXPECT_THAT(ErrorOf(cluster), HasSubstr("bytes of weights"));

  cluster = OneInstance();
  cluster.instances[0].scheduler.max_num_seqs = 0;
  EXPECT_THAT(ErrorOf(cluster), HasSubstr("max_num_seqs"));

  cluster = OneInstance();
  cluster.instances[0].tp = 2;
  cluster.instances[0].pp = 2;
  cluster.link_gib_per_s = {16, 16, 16};
  cluster.link_latency_ns = {};
  cluster.link_latency_ns = {1, 2};
  EXPECT_EQ(ErrorOf(cluster), "") << "more values than dimensions are no harm";
}

TEST(PlanCluster, RefusesSeveralExpertGroupsADevice) {
  ClusterSpec cluster = OneInstance();
  cluster.instances[0].model = TinyMoeModel();
  cluster.instances[0].dp_group = "g";
  cluster.instances[0].ep = 4;
  cluster.instances.push_back(cluster.instances[0]);
  try {
    PlanCluster(cluster);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("several expert groups"));
  }
}

}  // namespace
}  // namespace plumbline
