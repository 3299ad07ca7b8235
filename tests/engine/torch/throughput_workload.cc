#include "tests/engine/torch/throughput_workload.h"

#include <condition_variable>
#include <mutex>

#include "engine/core/core_engine.h"
#include "engine/torch/checkpoint/random_bits.h"

namespace plumbline {
namespace {

using Shape = ThroughputShape;

constexpr double kNsPerMs = 1e6;

// First and last token of every request.
class TimingSink final : public EventSink {
 public:
  void OnEvents(std::span<const Event> events) override {
    const std::lock_guard lock(mutex_);
    for (const Event& event : events) {
      const auto id = static_cast<std::size_t>(event.id);
      if (event.kind == EventKind::kTokens) {
        if (first_[id] == 0) first_[id] = event.time_ns;
        last_[id] = event.time_ns;
      } else if (event.kind == EventKind::kFinished) {
        ++finished_;
      }
    }
    if (finished_ == Shape::kRequests) all_.notify_one();
  }

  ThroughputRun WaitAndSummarize(TimeNs start) {
    std::unique_lock lock(mutex_);
    all_.wait(lock, [this] { return finished_ == Shape::kRequests; });
    ThroughputRun run;
    TimeNs end = start;
    for (std::size_t i = 0; i < Shape::kRequests; ++i) {
      run.ttft_ms += static_cast<double>(first_[i] - start) / kNsPerMs / Shape::kRequests;
      run.tpot_ms +=
          static_cast<double>(last_[i] - first_[i]) / kNsPerMs / (Shape::kOutput - 1) / Shape::kRequests;
      end = std::max(end, last_[i]);
    }
    run.output_tokens_per_s = static_cast<double>(Shape::kRequests * Shape::kOutput * kNsPerSecond) /
                              static_cast<double>(end - start);
    return run;
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  std::int64_t finished_ = 0;
  std::vector<TimeNs> first_ = std::vector<TimeNs>(Shape::kRequests);
  std::vector<TimeNs> last_ = std::vector<TimeNs>(Shape::kRequests);
};

std::vector<Request> MakeRequests(std::int64_t vocab_size) {
  std::vector<Request> requests(Shape::kRequests);
  std::uint64_t index = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].id = static_cast<RequestId>(i);
    requests[i].input_toks = Shape::kInput;
    requests[i].output_toks = Shape::kOutput;
    for (std::int64_t token = 0; token < Shape::kInput; ++token) {
      const std::uint64_t bits = RandomBits(1, index++);
      requests[i].prompt_token_ids.push_back(
          static_cast<TokenId>(bits % static_cast<std::uint64_t>(vocab_size)));
    }
  }
  return requests;
}

}  // namespace

struct ThroughputEngine::Parts {
  std::int64_t vocab_size = 0;
  const ModelRunner* runner = nullptr;  // the engine's
  std::unique_ptr<Engine> engine;
};

ThroughputEngine::ThroughputEngine(const std::string& model_folder, cpu::Dtype dtype, int threads)
    : parts_(std::make_unique<Parts>()) {
  constexpr std::int64_t kCacheBytes = std::int64_t{1} << 30;
  constexpr std::int64_t kBlockSize = 16;
  const ModelConfig config = ReadModelConfig(model_folder);
  const std::int64_t num_blocks = kCacheBytes / KvBlockBytes(config, kBlockSize, dtype);
  const std::unique_ptr<WeightSource> source = DummyWeights(42);
  auto runner =
      std::make_unique<ModelRunner>(config, LoadWeights(config, *source, dtype),
                                    ModelRunnerSizes{.max_tokens = Shape::kBudget,
                                                     .max_sequences = Shape::kMaxNumSeqs,
                                                     .max_model_len = config.max_position_embeddings,
                                                     .block_size = kBlockSize,
                                                     .num_blocks = num_blocks,
                                                     .threads = threads});
  parts_->vocab_size = config.vocab_size;
  parts_->runner = runner.get();
  CoreEngineParts core;
  core.scheduler = {.max_num_seqs = Shape::kMaxNumSeqs,
                    .max_num_batched_tokens = Shape::kBudget,
                    .block_size = kBlockSize,
                    .num_blocks = num_blocks,
                    .enable_prefix_caching = false};
  core.executor = std::move(runner);
  parts_->engine = MakeCoreEngine(std::move(core));
}

ThroughputEngine::~ThroughputEngine() = default;

ThroughputRun ThroughputEngine::Run() {
  TimingSink sink;
  const StepTimes before = parts_->runner->times();
  const TimeNs start = MonotonicClock().NowNs();
  parts_->engine->Submit(MakeRequests(parts_->vocab_size), sink);
  ThroughputRun run = sink.WaitAndSummarize(start);
  // Any answer of the engine's thread comes after its last step: its times are complete then.
  parts_->engine->ResetPrefixCache();
  const StepTimes& after = parts_->runner->times();
  run.times = {.products_ns = after.products_ns - before.products_ns,
               .attention_ns = after.attention_ns - before.attention_ns,
               .rest_ns = after.rest_ns - before.rest_ns};
  return run;
}

}  // namespace plumbline
