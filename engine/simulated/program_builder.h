#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/batch.h"
#include "engine/simulated/cluster.h"

namespace plumbline {

// One request's part of a prompt.
struct PrefillChunk {
  std::int64_t tokens = 0;
  std::int64_t context = 0;  // tokens before it
};

// What the cost of an iteration depends on.
struct BatchFigures {
  std::int64_t total_tokens = 0;
  std::int64_t sequences = 0;  // rows of the per-sequence layers
  std::int64_t prefill_tokens = 0;
  std::int64_t prefill_context = 0;
  std::int64_t num_decodes = 0;
  std::int64_t decode_sum = 0;
  std::int64_t decode_max = 0;
  std::int64_t decode_min = 0;
  std::int64_t sampled = 0;  // requests from which a token comes out
  // The prefills one by one; only for a cost model that sums attention.
  std::vector<PrefillChunk> prefills{};
  std::int64_t recalled_bytes = 0;  // KV to bring back from a lower tier before anything is computed
  std::int64_t group_tokens = 0;    // the largest total of the data-parallel group; total_tokens without one
};

BatchFigures FiguresOf(const Batch& batch, const CostModel& cost_model);

// Turns a batch into what each NPU of an instance does.
class ProgramBuilder {
 public:
  // Throws Error(kBadInput) when the profile lacks the degree or a table that the model needs. The specs are
  // referred to and must stay.
  ProgramBuilder(const InstanceSpec& instance, const InstancePlan& plan, const ClusterPlan& cluster);

  // One program for each NPU id from the instance's first one on.
  std::vector<std::shared_ptr<const Program>> Build(const BatchFigures& figures) const;

  // Layers of the architecture that the profile has no times for; they take none.
  const std::vector<std::string>& missing_layers() const { return missing_layers_; }

 private:
  struct Layer {
    std::string name;
    LayerKind kind;
    const LinearTable* table;  // dense and per-sequence
  };
  struct Emitter;

  std::vector<Layer> Resolve(const std::vector<LayerType>& layers);
  std::int64_t LayerTime(const Layer& layer, const BatchFigures& figures) const;
  std::int64_t AttentionTime(const BatchFigures& figures) const;
  std::vector<std::int64_t> ExpertTimes(const BatchFigures& figures) const;
  std::int64_t BlocksOfStage(std::int64_t stage) const;
  Program BuildOne(std::int64_t stage, std::int64_t rank, const BatchFigures& figures,
                   std::int64_t expert_ns) const;
  std::int32_t DeviceOf(const WeightPlace& place) const;
  Program BuildReceiver(const Program& sender, std::int32_t npu) const;
  void EmitLayers(Emitter& out, const std::vector<Layer>& layers, std::int64_t block) const;
  std::int32_t AddLoad(Emitter& out, std::int64_t block, const std::string& layer) const;
  void EmitBlock(Emitter& out, std::int64_t block) const;
  void EmitExperts(Emitter& out, std::int64_t block, const Layer& layer) const;

  const InstanceSpec& instance_;
  const InstancePlan& plan_;
  const std::int32_t first_cxl_device_;
  const bool merges_computes_;
  const CostModel cost_model_;
  const DegreeTables* tables_;
  const DegreeTables* stable_tables_;  // tp 1 where there is one
  std::vector<std::string> missing_layers_;
  std::vector<Layer> prologue_;
  std::vector<Layer> pre_attention_;
  std::vector<Layer> post_attention_;
  std::vector<Layer> mlp_;
  std::vector<Layer> head_;
};

}  // namespace plumbline
