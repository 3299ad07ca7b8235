#include "engine/core/scheduler_config.h"

#include <limits>
#include <string>

#include "engine/base/error.h"

namespace plumbline {
namespace {

void RequireInRange(const char* field, std::int64_t value, std::int64_t least, std::int64_t most,
                    const std::string& accepted) {
  if (value >= least && value <= most) return;
  ThrowBadInput(
      {.field = field, .value = std::to_string(value), .problem = "is out of range", .accepted = accepted});
}

}  // namespace

void CheckSchedulerConfig(const SchedulerConfig& config) {
  // Counts of tokens, blocks and requests are kept in 32 bits where there are many of them.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::string positive = "1 to " + std::to_string(kMost);
  RequireInRange("max_num_seqs", config.max_num_seqs, 1, kMost, positive);
  RequireInRange("max_num_batched_tokens", config.max_num_batched_tokens, 1, kMost, positive);
  RequireInRange("block_size", config.block_size, 1, kMost, positive);
  RequireInRange("num_blocks", config.num_blocks, 1, kMost,
                 positive + "; the KV cache holds no block otherwise");
  RequireInRange("long_prefill_token_threshold", config.long_prefill_token_threshold, 0, kMost,
                 "0 (off) to " + std::to_string(kMost));
}

}  // namespace plumbline
