#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/batch.h"
#include "engine/core/block_hash.h"

namespace plumbline {

enum class SequenceState : std::uint8_t { kIdle, kWaiting, kRunning, kFinished };

// A request inside a scheduler. Whoever hands it over owns it, and keeps it until it is finished and
// `batches_in_flight` is 0; in between only the scheduler changes it.
struct Sequence {
  RequestId id = 0;
  std::int64_t input_toks = 0;
  std::int64_t output_toks = 0;
  TimeNs arrival_ns = 0;
  SamplingParams sampling;

  // Prompt, then the output as far as it is known: sampled, or recorded
  // (SchedulingPolicy::outputs_known_ahead). Empty for a request that came with counts only, which the prefix
  // cache leaves alone.
  std::vector<TokenId> token_ids;

  SequenceState state = SequenceState::kIdle;
  bool prefilling = true;     // no output token yet
  bool counted = false;       // stands in the prefix statistics
  std::int64_t computed = 0;  // tokens whose K/V lie in the cache; raised when they are scheduled
  std::int64_t reached = 0;   // prompt and output so far
  std::int64_t cached = 0;    // tokens that the prefix cache served at the latest admission
  std::int32_t preemptions = 0;
  std::int32_t batches_in_flight = 0;

  std::vector<BlockId> blocks;        // position p lies in blocks[p / block_size]
  std::vector<BlockHash> hash_chain;  // of the full blocks of token_ids
  std::int64_t hashed_blocks = 0;     // leading blocks whose content the pool knows

  Sequence* waiting_previous = nullptr;  // neighbours in the waiting queue
  Sequence* waiting_next = nullptr;

  std::int64_t limit() const { return input_toks + output_toks; }
};

}  // namespace plumbline
