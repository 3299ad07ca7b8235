#pragma once

#include <string>
#include <vector>

#include "engine/torch/model_runner.h"

namespace plumbline {

// The throughput workload: 64 requests at once, 128 tokens in, 64 out, at most 16 running, a budget of 2048
// tokens a step, no prefix cache, dummy weights.
struct ThroughputShape {
  static constexpr std::int64_t kRequests = 64;
  static constexpr std::int64_t kInput = 128;
  static constexpr std::int64_t kOutput = 64;
  static constexpr std::int64_t kMaxNumSeqs = 16;
  static constexpr std::int64_t kBudget = 2048;
};

// One run of it.
struct ThroughputRun {
  double output_tokens_per_s = 0;
  double ttft_ms = 0;  // means over the requests
  double tpot_ms = 0;
  StepTimes times;  // zero where the engine does not tell
};

// The built-in engine with the workload; booted once, run as often as asked.
class ThroughputEngine {
 public:
  ThroughputEngine(const std::string& model_folder, cpu::Dtype dtype, int threads);
  ~ThroughputEngine();
  ThroughputRun Run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace plumbline
