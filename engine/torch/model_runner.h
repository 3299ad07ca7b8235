#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/executor.h"
#include "engine/kernels/cpu/kernels.h"
#include "engine/torch/model_weights.h"
#include "engine/torch/step_inputs.h"

namespace plumbline {

// The sizes that a runner is made for. Nothing grows beyond them.
struct ModelRunnerSizes {
  std::int64_t max_tokens = 0;     // of a batch
  std::int64_t max_sequences = 0;  // of a batch
  std::int64_t max_model_len = 0;  // positions of a sequence
  std::int64_t block_size = 0;     // a multiple of 16
  std::int64_t num_blocks = 0;
  int threads = 1;
};

// Where the time of all steps went, as the first thread of the team saw it.
struct StepTimes {
  TimeNs products_ns = 0;
  TimeNs attention_ns = 0;
  TimeNs rest_ns = 0;  // embedding, norms, rotary embedding and cache writes, sampling
};

// Bytes of one KV block over all layers, keys and values.
std::int64_t KvBlockBytes(const ModelConfig& config, std::int64_t block_size, cpu::Dtype dtype);

// A dense decoder over a paged KV cache: one parallel region a step, in which the team walks through the
// layers with a barrier between two operations. The residual stream, the output of every product and the
// logits are float32 in either dtype. What follows the last layer's K/V is computed only for rows from which
// a token is sampled. The ids do not depend on how requests were batched, chunked, preempted or served from
// the prefix cache, nor on the number of threads: the kernels give every row the same bits in any company.
class ModelRunner final : public Executor, private StepProbe {
 public:
  // The KV cache has the dtype of the weights. Throws Error(kEngineFailed) where memory does not suffice.
  ModelRunner(const ModelConfig& config, ModelWeights weights, const ModelRunnerSizes& sizes);

  TimeNs Execute(const Batch& batch, std::span<TokenId> sampled) override;

  StepProbe* step_probe() override { return this; }

  // Of the last step: [sampled rows, vocab], in the batch's order.
  std::span<const float> logits() const;
  const StepTimes& times() const { return times_; }

 private:
  class Pass;

  TimeNs RunStep(const StepShape& shape) override;

  void RunLayers(Pass& pass);
  void RunMlp(Pass& pass, const LayerWeights& layer, std::int64_t rows, float* residual);
  void RunHead(Pass& pass, float* residual);
  void Sample(const Batch& batch, std::span<TokenId> sampled) const;

  cpu::RmsNormArgs Norm(const std::vector<float>& weight, std::int64_t rows, float* residual) const;
  cpu::QkvArgs Qkv(const LayerWeights& layer, const cpu::KvCache& cache) const;
  cpu::AttentionArgs Attention(const cpu::KvCache& cache) const;
  cpu::AttentionArgs SampledAttention(const cpu::KvCache& cache) const;

  ModelConfig config_;
  ModelWeights weights_;
  ModelRunnerSizes sizes_;
  const cpu::Kernels& kernels_;
  std::vector<float> rope_table_;
  Buffer cache_memory_;
  std::vector<cpu::KvCache> caches_;  // one a layer
  StepInputs inputs_;
  Buffer residual_;
  Buffer normed_;
  Buffer qkv_;
  Buffer attention_;
  Buffer mlp_;
  Buffer sampled_residual_;
  Buffer sampled_q_;
  Buffer logits_;
  Buffer argmax_;
  Buffer scratch_;
  std::int64_t scratch_floats_ = 0;
  StepTimes times_;
};

}  // namespace plumbline
