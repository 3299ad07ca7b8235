#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/api/request.h"

namespace plumbline {

struct Sequence;

// Index of a KV block in the pool: 0 <= id < SchedulerConfig::num_blocks.
using BlockId = std::int32_t;

// What one request contributes to a step. The spans borrow from the request: they are valid until the batch
// is completed, as long as it is the only one in flight.
struct BatchEntry {
  Sequence* sequence = nullptr;  // the scheduler's own; executors have no use for it
  RequestId request_id = 0;
  std::int64_t first_position = 0;  // tokens of this request whose K/V lie in the cache already
  std::int32_t num_tokens = 0;      // computed in this step: positions first_position .. + num_tokens - 1
  // A token comes out after the last position. False for all but the last chunk of a prompt, and while
  // preempted work is being caught up.
  bool samples = false;
  // Which output token that is, from 0: with the request's seed the key of its random draw, so that a
  // preempted request draws the same again.
  std::int64_t output_index = 0;
  const SamplingParams* sampling = nullptr;
  // `num_tokens` ids; empty for a request that came with counts only.
  std::span<const TokenId> token_ids;
  // Position p lies in block block_table[p / block_size] at offset p % block_size, for every p below
  // first_position + num_tokens. Blocks may be shared with other entries of the same batch: a prefix hit may
  // refer to a block that another entry computes in this very step, so a layer writes the K/V of the whole
  // batch before any attention reads them.
  std::span<const BlockId> block_table;
};

// One step: entries in the scheduler's order, running requests first. A request appears once. An entry of
// more than one token is a prefill, an entry of exactly one a decode (also when it is the tail of a prompt).
struct Batch {
  std::int64_t id = 0;  // counts from 0
  std::vector<BatchEntry> entries;
  std::int64_t total_tokens = 0;
  std::int64_t prefill_tokens = 0;   // sum of the prefills' tokens
  std::int64_t prefill_context = 0;  // sum of the prefills' first_position
  std::int64_t num_prefills = 0;
  std::int64_t num_decodes = 0;
  std::int64_t decode_context_sum = 0;  // of the decodes' first_position, as the next two
  std::int64_t decode_context_max = 0;
  std::int64_t decode_context_min = 0;
  std::int64_t preempted = 0;  // requests thrown out while it was built

  // Forgets the content, keeps the memory.
  void Clear();
};

}  // namespace plumbline
