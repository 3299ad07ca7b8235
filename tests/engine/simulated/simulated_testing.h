#pragma once

#include <memory>

#include "engine/simulated/cluster.h"
#include "engine/simulated/cluster_simulation.h"

namespace plumbline {

inline std::shared_ptr<ModelShape> TinyModel() {
  auto model = std::make_shared<ModelShape>();
  *model = {.name = "tiny",
            .model_type = "tiny",
            .torch_dtype = "bfloat16",
            .hidden_size = 64,
            .num_layers = 2,
            .num_heads = 4,
            .num_kv_heads = 4,
            .head_dim = 16,
            .vocab_size = 128,
            .intermediate_size = 128,
            .moe_intermediate_size = 128,
            .max_position_embeddings = 4096};
  return model;
}

inline std::shared_ptr<ModelShape> TinyMoeModel() {
  auto model = TinyModel();
  model->num_experts = 8;
  model->experts_per_token = 2;
  return model;
}

// A layer takes 10 ns a token, the head 100 ns a sequence, attention 50 ns, experts 7 ns a token.
inline std::shared_ptr<ProfileBundle> TinyProfile() {
  auto profile = std::make_shared<ProfileBundle>();
  profile->source = "tiny-profile";
  for (const std::int64_t tp : {1, 2, 3}) {
    DegreeTables& tables = profile->by_tp[tp];
    tables.dense.emplace("o_proj", LinearTable({1, 2}, {10, 20}));
    tables.per_sequence.emplace("lm_head", LinearTable({1, 2}, {100, 200}));
    tables.attention = AttentionTable({{.n_decode = 1, .kv_decode = 1, .time_ns = 50}});
    tables.moe = MoeTable({1}, {LinearTable({1, 2}, {7, 14})});
  }
  return profile;
}

inline std::shared_ptr<Architecture> TinyArchitecture() {
  auto architecture = std::make_shared<Architecture>();
  architecture->pre_attention = {{.name = "attention", .kind = LayerKind::kAttention}};
  architecture->post_attention = {{.name = "o_proj", .kind = LayerKind::kDense}};
  architecture->mlp_moe = {{.name = "moe", .kind = LayerKind::kMoe}};
  architecture->head = {{.name = "lm_head", .kind = LayerKind::kPerSequence}};
  return architecture;
}

// A host memory that takes no time to speak of, one instance of one NPU.
inline ClusterSpec OneInstance() {
  ClusterSpec cluster;
  cluster.source = "tiny-cluster";
  cluster.nodes = {{.gib = 64, .gb_per_s = 1e6, .latency_ns = 0}};
  cluster.link_gib_per_s = {16};
  cluster.link_latency_ns = {1000};
  InstanceSpec instance;
  instance.model_name = "tiny";
  instance.hardware = "none";
  instance.model = TinyModel();
  instance.architecture = TinyArchitecture();
  instance.profile = TinyProfile();
  instance.npu_mem_gib = 1;
  instance.npu_mem_gb_per_s = 1000;
  instance.scheduler.block_size = 4;
  cluster.instances = {instance};
  return cluster;
}

// Keeps the rows.
class RowCollector : public SimulationListener {
 public:
  void OnRow(std::int64_t instance, SimulatedRow row, TimeNs) override {
    rows.push_back(std::move(row));
    instances.push_back(instance);
  }
  void OnHeartbeat(const Heartbeat& beat) override { beats.push_back(beat); }

  std::vector<SimulatedRow> rows;
  std::vector<std::int64_t> instances;
  std::vector<Heartbeat> beats;
};

inline SimulationRequest Asked(RequestId id, std::int64_t input_toks, std::int64_t output_toks,
                               TimeNs arrival_ns = 0) {
  return {.id = id,
          .input_toks = input_toks,
          .output_toks = output_toks,
          .arrival_ns = arrival_ns,
          .token_ids = {}};
}

}  // namespace plumbline
