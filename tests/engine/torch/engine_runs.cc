#include "tests/engine/torch/engine_runs.h"

namespace plumbline {

std::string NumericsFolder(const std::string& name) {
  return std::string(PLUMBLINE_SOURCE_DIR) + "/tests/testdata/numerics/" + name;
}

TimeNs RecordingRunner::Execute(const Batch& batch, std::span<TokenId> sampled) {
  constexpr TimeNs kStepNs = 1000;
  runner_.Execute(batch, sampled);
  std::span<const float> left = runner_.logits();
  std::size_t rows = 0;
  for (const BatchEntry& entry : batch.entries) rows += entry.samples ? 1 : 0;
  const std::size_t width = rows == 0 ? 0 : left.size() / rows;
  for (const BatchEntry& entry : batch.entries) {
    if (!entry.samples) continue;
    logits_[{entry.request_id, entry.output_index}].assign(left.begin(),
                                                           left.begin() + static_cast<long>(width));
    left = left.subspan(width);
  }
  return kStepNs;
}

void AnswerSink::OnEvents(std::span<const Event> events) {
  for (const Event& event : events) {
    Answer& answer = answers[event.id];
    if (event.kind == EventKind::kTokens) {
      answer.ids.insert(answer.ids.end(), event.token_ids, event.token_ids + event.count);
    } else if (event.kind == EventKind::kScheduled) {
      answer.cached = event.count;
    } else if (event.kind == EventKind::kPreempted) {
      ++answer.preempted;
    } else if (event.kind == EventKind::kFinished) {
      answer.reason = event.reason;
      answer.text = event.text;
    }
  }
}

Request MakeRequest(RequestId id, std::vector<TokenId> prompt, std::int64_t output_toks,
                    const SamplingParams& sampling) {
  Request request;
  request.id = id;
  request.input_toks = static_cast<std::int64_t>(prompt.size());
  request.output_toks = output_toks;
  request.prompt_token_ids = std::move(prompt);
  request.sampling = sampling;
  return request;
}

RunResult RunModel(const std::string& model_folder, const std::vector<std::vector<Request>>& rounds,
                   const RunOptions& options) {
  constexpr std::int64_t kBlockSize = 16;
  const ModelConfig config = ReadModelConfig(model_folder);
  const std::unique_ptr<WeightSource> source = OpenCheckpoint(model_folder, config);
  const ModelRunnerSizes sizes = {.max_tokens = options.max_num_batched_tokens,
                                  .max_sequences = options.max_num_seqs,
                                  .max_model_len = config.max_position_embeddings,
                                  .block_size = kBlockSize,
                                  .num_blocks = options.num_blocks,
                                  .threads = options.threads};
  RunResult result;
  CoreEngineParts parts;
  parts.facts.vocab_size = config.vocab_size;
  parts.facts.max_model_len = config.max_position_embeddings;
  parts.scheduler = {.max_num_seqs = options.max_num_seqs,
                     .max_num_batched_tokens = options.max_num_batched_tokens,
                     .block_size = kBlockSize,
                     .num_blocks = options.num_blocks,
                     .enable_prefix_caching = options.enable_prefix_caching};
  parts.executor = std::make_unique<RecordingRunner>(
      ModelRunner(config, LoadWeights(config, *source, options.dtype), sizes), result.logits);
  const std::unique_ptr<Engine> engine = MakeVirtualCoreEngine(std::move(parts));
  AnswerSink sink;
  for (const std::vector<Request>& round : rounds) {
    engine->Submit(round, sink);
    VirtualTime& time = *engine->virtual_time();
    while (const auto next = time.NextEventTime()) time.AdvanceTo(*next);
  }
  result.answers = std::move(sink.answers);
  return result;
}

}  // namespace plumbline
