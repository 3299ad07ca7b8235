#pragma once

#include <cstdint>

namespace plumbline {

// The resolved settings of one scheduler, under vLLM's names.
struct SchedulerConfig {
  std::int64_t max_num_seqs = 128;                // requests in the running list
  std::int64_t max_num_batched_tokens = 2048;     // tokens a step
  std::int64_t block_size = 16;                   // tokens a KV block
  std::int64_t num_blocks = 0;                    // KV blocks in the pool
  std::int64_t long_prefill_token_threshold = 0;  // most prompt tokens of one request a step; 0 = off
  bool enable_chunked_prefill = true;
  bool enable_prefix_caching = true;
  bool reserve_full_isl = true;  // admit a request only when all tokens it holds fit in free blocks
};

// Throws Error(kBadInput) naming the field that makes no scheduler.
void CheckSchedulerConfig(const SchedulerConfig& config);

// Where engines differ by decision, not by code: a real engine and the reference simulator run the same
// scheduler under two of these.
struct SchedulingPolicy {
  // The hash chain of the prefix cache covers the recorded answer from the start (the reference simulator,
  // which never samples), instead of growing as tokens are sampled.
  bool outputs_known_ahead = false;
  // A completed batch is judged by what its requests have reached by now, later batches in flight included
  // (the reference simulator), instead of by what that batch computed. The same with one batch in flight.
  bool completion_reads_latest_progress = false;
  // A request leaves when its prompt is computed: the prefill side of a prefill/decode split.
  bool prefill_only = false;
  // An idle engine in virtual time looks for new requests in steps of this length, counted from its last
  // event. 0 = it wakes when a request comes.
  std::int64_t idle_poll_ns = 0;
};

constexpr SchedulingPolicy kRealEnginePolicy{};
constexpr SchedulingPolicy kReferenceSimulatorPolicy{
    .outputs_known_ahead = true, .completion_reads_latest_progress = true, .idle_poll_ns = 1'000'000};

}  // namespace plumbline
