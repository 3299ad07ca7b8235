#include "engine/torch/model_runner.h"

#include <omp.h>
#include <chrono>
#include <cmath>
#include <utility>

#include "engine/torch/rope_table.h"
#include "engine/torch/sampler.h"

namespace plumbline {
namespace {

TimeNs Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const float* DataOrNull(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

// One thread's way through a step: it does its slice of each operation and waits for the team.
class ModelRunner::Pass {
 public:
  Pass(StepTimes& times, int thread, int threads)
      : times_(times), thread_(thread), threads_(threads), last_(thread == 0 ? Now() : 0) {}

  template <typename Args>
  void Do(void (*operation)(const Args&, int, int), const Args& args, TimeNs StepTimes::*kind) {
    operation(args, thread_, threads_);
#pragma omp barrier
    if (thread_ != 0) return;
    const TimeNs now = Now();
    times_.*kind += now - last_;
    last_ = now;
  }

 private:
  StepTimes& times_;
  int thread_;
  int threads_;
  TimeNs last_;
};

std::int64_t KvBlockBytes(const ModelConfig& config, std::int64_t block_size, cpu::Dtype dtype) {
  return 2 * config.num_hidden_layers * block_size * config.KeyValueSize() * cpu::SizeOf(dtype);
}

ModelRunner::ModelRunner(const ModelConfig& config, ModelWeights weights, const ModelRunnerSizes& sizes)
    : config_(config),
      weights_(std::move(weights)),
      sizes_(sizes),
      kernels_(cpu::BestKernels()),
      rope_table_(MakeRopeTable(config.rope, config.head_dim, sizes.max_model_len)),
      cache_memory_(sizes.num_blocks * KvBlockBytes(config, sizes.block_size, weights_.dtype)),
      inputs_(sizes.max_tokens, sizes.max_sequences, sizes.max_model_len, sizes.block_size),
      residual_(MakeBuffer<float>(sizes.max_tokens * config.hidden_size)),
      normed_(MakeBuffer<float>(sizes.max_tokens * config.hidden_size)),
      qkv_(MakeBuffer<float>(sizes.max_tokens * (config.QuerySize() + 2 * config.KeyValueSize()))),
      attention_(MakeBuffer<float>(sizes.max_tokens * config.QuerySize())),
      mlp_(MakeBuffer<float>(sizes.max_tokens * config.intermediate_size)),
      sampled_residual_(MakeBuffer<float>(sizes.max_sequences * config.hidden_size)),
      sampled_q_(MakeBuffer<float>(sizes.max_sequences * config.QuerySize())),
      logits_(MakeBuffer<float>(sizes.max_sequences * config.vocab_size)),
      argmax_(MakeBuffer<std::int32_t>(sizes.max_sequences)),
      scratch_floats_(cpu::AttentionScratchFloats(sizes.threads, sizes.max_model_len,
                                                  config.num_attention_heads, config.num_key_value_heads,
                                                  config.head_dim)) {
  scratch_ = MakeBuffer<float>(scratch_floats_);
  cpu::KvCache cache = {.dtype = weights_.dtype,
                        .block_size = sizes.block_size,
                        .kv_heads = config.num_key_value_heads,
                        .head_dim = config.head_dim};
  // A block's elements are a multiple of 256, so that every layer starts on a multiple of 64 bytes.
  const std::int64_t side_bytes = sizes.num_blocks * cache.BlockElements() * cpu::SizeOf(cache.dtype);
  auto* memory = cache_memory_.As<std::byte>();
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    cache.keys = std::exchange(memory, memory + side_bytes);
    cache.values = std::exchange(memory, memory + side_bytes);
    caches_.push_back(cache);
  }
}

std::span<const float> ModelRunner::logits() const {
  return {logits_.As<float>(), static_cast<std::size_t>(inputs_.sampled() * config_.vocab_size)};
}

TimeNs ModelRunner::Execute(const Batch& batch, std::span<TokenId> sampled) {
  inputs_.Fill(batch);
#pragma omp parallel num_threads(sizes_.threads)
  {
    Pass pass(times_, omp_get_thread_num(), omp_get_num_threads());
    RunLayers(pass);
  }
  const TimeNs start = Now();
  Sample(batch, sampled);
  times_.rest_ns += Now() - start;
  return 0;
}

cpu::RmsNormArgs ModelRunner::Norm(const std::vector<float>& weight, std::int64_t rows,
                                   float* residual) const {
  return {.rows = rows,
          .hidden = config_.hidden_size,
          .residual = residual,
          .weight = weight.data(),
          .epsilon = static_cast<float>(config_.rms_norm_eps),
          .out = normed_.As<float>()};
}

cpu::QkvArgs ModelRunner::Qkv(const LayerWeights& layer, const cpu::KvCache& cache) const {
  return {.tokens = inputs_.tokens(),
          .qkv = qkv_.As<float>(),
          .qkv_stride = layer.qkv.outputs(),
          .q_heads = config_.num_attention_heads,
          .bias = DataOrNull(layer.qkv_bias),
          .q_norm = DataOrNull(layer.q_norm),
          .k_norm = DataOrNull(layer.k_norm),
          .norm_epsilon = static_cast<float>(config_.rms_norm_eps),
          .cos_sin = rope_table_.data(),
          .rotary_dim = config_.head_dim,
          .positions = inputs_.positions.data(),
          .slots = inputs_.slots.data(),
          .cache = cache};
}

cpu::AttentionArgs ModelRunner::Attention(const cpu::KvCache& cache) const {
  return {.sequences = inputs_.sequences(),
          .query_starts = inputs_.query_starts.data(),
          .context_lengths = inputs_.context_lengths.data(),
          .block_tables = inputs_.block_tables.data(),
          .block_table_stride = inputs_.block_table_stride,
          .q = qkv_.As<float>(),
          .q_stride = config_.QuerySize() + 2 * config_.KeyValueSize(),
          .q_heads = config_.num_attention_heads,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config_.head_dim))),
          .cache = cache,
          .out = attention_.As<float>(),
          .out_stride = config_.QuerySize(),
          .scratch = scratch_.As<float>(),
          .scratch_floats = scratch_floats_};
}

cpu::AttentionArgs ModelRunner::SampledAttention(const cpu::KvCache& cache) const {
  cpu::AttentionArgs args = Attention(cache);
  args.sequences = inputs_.sampled();
  args.query_starts = inputs_.sampled_starts.data();
  args.context_lengths = inputs_.sampled_context_lengths.data();
  args.block_tables = inputs_.sampled_block_tables.data();
  args.q = sampled_q_.As<float>();
  args.q_stride = config_.QuerySize();
  return args;
}

void ModelRunner::RunLayers(Pass& pass) {
  const std::int64_t tokens = inputs_.tokens();
  std::int64_t rows = tokens;
  float* residual = residual_.As<float>();
  pass.Do(kernels_.embedding,
          {.ids = inputs_.ids.data(),
           .tokens = tokens,
           .table = weights_.embedding.As<void>(),
           .table_dtype = weights_.dtype,
           .hidden = config_.hidden_size,
           .out = residual},
          &StepTimes::rest_ns);
  for (std::size_t index = 0; index < weights_.layers.size(); ++index) {
    const LayerWeights& layer = weights_.layers[index];
    const cpu::KvCache& cache = caches_[index];
    const bool sampled_only = index + 1 == weights_.layers.size() && inputs_.sampled() < tokens;
    pass.Do(kernels_.rms_norm, Norm(layer.input_norm, tokens, residual), &StepTimes::rest_ns);
    pass.Do(kernels_.product,
            {.rows = tokens,
             .x = normed_.As<float>(),
             .x_stride = config_.hidden_size,
             .weight = &layer.qkv,
             .y = qkv_.As<float>(),
             .y_stride = layer.qkv.outputs()},
            &StepTimes::products_ns);
    pass.Do(kernels_.qkv, Qkv(layer, cache), &StepTimes::rest_ns);
    cpu::AttentionArgs attention = Attention(cache);
    if (sampled_only) {
      rows = inputs_.sampled();
      if (rows == 0) return;  // the step only fills the cache
      attention = SampledAttention(cache);
      const cpu::GatherRowsArgs gather_q = {.count = rows,
                                            .width = config_.QuerySize(),
                                            .rows = inputs_.sampled_rows.data(),
                                            .in = qkv_.As<float>(),
                                            .in_stride = layer.qkv.outputs(),
                                            .out = sampled_q_.As<float>()};
      const cpu::GatherRowsArgs gather_residual = {.count = rows,
                                                   .width = config_.hidden_size,
                                                   .rows = inputs_.sampled_rows.data(),
                                                   .in = residual,
                                                   .in_stride = config_.hidden_size,
                                                   .out = sampled_residual_.As<float>()};
      pass.Do(kernels_.gather_rows, gather_q, &StepTimes::rest_ns);
      pass.Do(kernels_.gather_rows, gather_residual, &StepTimes::rest_ns);
      residual = sampled_residual_.As<float>();
    }
    pass.Do(kernels_.attention, attention, &StepTimes::attention_ns);
    pass.Do(kernels_.attention_combine, attention, &StepTimes::attention_ns);
    pass.Do(kernels_.product,
            {.rows = rows,
             .x = attention_.As<float>(),
             .x_stride = config_.QuerySize(),
             .weight = &layer.output,
             .bias = DataOrNull(layer.output_bias),
             .y = residual,
             .y_stride = config_.hidden_size,
             .output = cpu::ProductOutput::kAccumulate},
            &StepTimes::products_ns);
    RunMlp(pass, layer, rows, residual);
  }
  RunHead(pass, residual);
}

void ModelRunner::RunMlp(Pass& pass, const LayerWeights& layer, std::int64_t rows, float* residual) {
  pass.Do(kernels_.rms_norm, Norm(layer.post_attention_norm, rows, residual), &StepTimes::rest_ns);
  pass.Do(kernels_.product,
          {.rows = rows,
           .x = normed_.As<float>(),
           .x_stride = config_.hidden_size,
           .weight = &layer.gate_up,
           .bias = DataOrNull(layer.gate_up_bias),
           .y = mlp_.As<float>(),
           .y_stride = config_.intermediate_size,
           .output = cpu::ProductOutput::kSiluMul},
          &StepTimes::products_ns);
  pass.Do(kernels_.product,
          {.rows = rows,
           .x = mlp_.As<float>(),
           .x_stride = config_.intermediate_size,
           .weight = &layer.down,
           .bias = DataOrNull(layer.down_bias),
           .y = residual,
           .y_stride = config_.hidden_size,
           .output = cpu::ProductOutput::kAccumulate},
          &StepTimes::products_ns);
}

void ModelRunner::RunHead(Pass& pass, float* residual) {
  const std::int64_t rows = inputs_.sampled();
  pass.Do(kernels_.rms_norm, Norm(weights_.final_norm, rows, residual), &StepTimes::rest_ns);
  pass.Do(kernels_.product,
          {.rows = rows,
           .x = normed_.As<float>(),
           .x_stride = config_.hidden_size,
           .weight = &weights_.lm_head,
           .y = logits_.As<float>(),
           .y_stride = config_.vocab_size},
          &StepTimes::products_ns);
  pass.Do(kernels_.arg_max,
          {.rows = rows,
           .width = config_.vocab_size,
           .logits = logits_.As<float>(),
           .stride = config_.vocab_size,
           .out = argmax_.As<std::int32_t>()},
          &StepTimes::rest_ns);
}

void ModelRunner::Sample(const Batch& batch, std::span<TokenId> sampled) const {
  std::size_t row = 0;
  for (std::size_t i = 0; i < batch.entries.size(); ++i) {
    const BatchEntry& entry = batch.entries[i];
    if (!entry.samples) continue;
    sampled[i] = argmax_.As<std::int32_t>()[row];
    if (entry.sampling != nullptr && entry.sampling->temperature > 0) {
      const auto width = static_cast<std::size_t>(config_.vocab_size);
      sampled[i] = SampleToken(logits().subspan(row * width, width), *entry.sampling, entry.output_index);
    }
    ++row;
  }
}

}  // namespace plumbline
