#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/core_engine.h"
#include "engine/torch/model_runner.h"

namespace plumbline {

// Folder of a small reference checkpoint.
std::string NumericsFolder(const std::string& name);

// A ModelRunner that keeps the logits of every sampled row, by request and output index.
class RecordingRunner final : public Executor {
 public:
  using Logits = std::map<std::pair<RequestId, std::int64_t>, std::vector<float>>;

  RecordingRunner(ModelRunner runner, Logits& logits) : runner_(std::move(runner)), logits_(logits) {}
  TimeNs Execute(const Batch& batch, std::span<TokenId> sampled) override;

 private:
  ModelRunner runner_;
  Logits& logits_;
};

struct Answer {
  std::vector<TokenId> ids;
  FinishReason reason = FinishReason::kNone;
  std::string text;
  std::int64_t cached = 0;
  std::int64_t preempted = 0;
};

// The ends of requests by id. Not for use from another thread than the engine's until the engine is shut
// down.
class AnswerSink final : public EventSink {
 public:
  void OnEvents(std::span<const Event> events) override;
  std::map<RequestId, Answer> answers;
};

Request MakeRequest(RequestId id, std::vector<TokenId> prompt, std::int64_t output_toks,
                    const SamplingParams& sampling = {});

// How the model is run; the defaults give a prompt whole and alone.
struct RunOptions {
  cpu::Dtype dtype = cpu::Dtype::kFloat32;
  std::int64_t max_num_batched_tokens = 512;
  std::int64_t max_num_seqs = 64;
  std::int64_t num_blocks = 256;
  bool enable_prefix_caching = false;
  int threads = 1;
};

struct RunResult {
  std::map<RequestId, Answer> answers;
  RecordingRunner::Logits logits;
};

// Serves the rounds one after the other, each to its end, in virtual time over one engine.
RunResult RunModel(const std::string& model_folder, const std::vector<std::vector<Request>>& rounds,
                   const RunOptions& options = {});

}  // namespace plumbline
