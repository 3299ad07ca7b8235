#include "engine/core/scheduler.h"

#include <algorithm>

namespace plumbline {
namespace {

const SchedulerConfig& Checked(const SchedulerConfig& config) {
  CheckSchedulerConfig(config);
  return config;
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, const SchedulingPolicy& policy,
                     SchedulerObserver& observer)
    : config_(Checked(config)),
      policy_(policy),
      observer_(observer),
      kv_cache_(config.num_blocks, config.block_size, config.enable_prefix_caching) {
  running_.reserve(static_cast<std::size_t>(std::min<std::int64_t>(config.max_num_seqs, 4096)));
}

void Scheduler::Enqueue(Sequence& sequence) {
  sequence.reached = sequence.input_toks;
  ExtendChain(sequence);
  sequence.state = SequenceState::kWaiting;
  waiting_.InsertByArrival(sequence);
}

bool Scheduler::EnqueuePrefilled(Sequence& sequence) {
  ExtendChain(sequence);
  const std::span<const BlockId> hits = kv_cache_.FindPrefix(sequence);
  const std::int64_t computed = sequence.computed;
  sequence.computed = 0;
  const std::int64_t beyond = computed - static_cast<std::int64_t>(hits.size()) * config_.block_size;
  const bool fits = kv_cache_.Allocate(sequence, beyond + 1, hits);
  sequence.computed = computed;
  if (!fits) return false;
  sequence.state = SequenceState::kRunning;
  running_.push_back(&sequence);
  return true;
}

void Scheduler::Remove(Sequence& sequence) {
  if (sequence.state == SequenceState::kWaiting) waiting_.Remove(sequence);
  if (sequence.state == SequenceState::kRunning) std::erase(running_, &sequence);
  kv_cache_.Free(sequence);
  sequence.state = SequenceState::kFinished;
}

bool Scheduler::Schedule(TimeNs now, Batch& batch) {
  batch.Clear();
  std::int64_t budget = config_.max_num_batched_tokens;
  if (ScheduleRunning(now, batch, budget)) ScheduleWaiting(now, batch, budget);
  if (batch.entries.empty()) return false;
  batch.id = next_batch_id_++;
  return true;
}

std::int64_t Scheduler::TokensWanted(const Sequence& sequence, std::int64_t cached) const {
  const std::int64_t tokens = sequence.reached - (sequence.computed + cached);
  const std::int64_t threshold = config_.long_prefill_token_threshold;
  return threshold > 0 ? std::min(tokens, threshold) : tokens;
}

// False when something had to be preempted: then nothing new is admitted in this step, for it would take the
// blocks that the preempted ones lacked.
bool Scheduler::ScheduleRunning(TimeNs now, Batch& batch, std::int64_t& budget) {
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    Sequence& sequence = *running_[i];
    const std::int64_t tokens = std::min(TokensWanted(sequence, 0), budget);
    if (tokens <= 0) continue;
    bool fits = kv_cache_.Allocate(sequence, tokens);
    while (!fits) {
      const bool gave_up_itself = running_.back() == &sequence;
      PreemptLast(now, batch);
      if (gave_up_itself) return false;
      fits = kv_cache_.Allocate(sequence, tokens);
    }
    Record(sequence, tokens, now, batch);
    budget -= tokens;
  }
  return batch.preempted == 0;
}

void Scheduler::ScheduleWaiting(TimeNs now, Batch& batch, std::int64_t& budget) {
  while (budget > 0 && !waiting_.empty()) {
    if (static_cast<std::int64_t>(running_.size()) >= config_.max_num_seqs) return;
    Sequence& sequence = *waiting_.front();
    if (sequence.arrival_ns > now) return;
    const std::span<const BlockId> hits = kv_cache_.FindPrefix(sequence);
    const std::int64_t on_device = static_cast<std::int64_t>(hits.size()) * config_.block_size;
    KvLowerTier* const tier = kv_cache_.lower_tier();
    const std::int64_t recalled = tier == nullptr ? 0 : tier->Find(sequence, on_device);
    const std::int64_t cached = on_device + recalled;
    std::int64_t tokens = TokensWanted(sequence, cached);
    if (!config_.enable_chunked_prefill && tokens > budget) return;
    tokens = std::min(tokens, budget);
    if (tokens <= 0) return;
    if (config_.reserve_full_isl && kv_cache_.BlocksRequired(sequence, std::max(sequence.reached, cached),
                                                             hits) > kv_cache_.pool().num_free()) {
      return;
    }
    if (kv_cache_.BlocksRequired(sequence, cached + tokens, hits) > kv_cache_.pool().num_free()) return;
    if (recalled > 0) tier->Recall(sequence, on_device);
    kv_cache_.Allocate(sequence, recalled + tokens, hits);
    waiting_.Remove(sequence);
    if (sequence.preemptions > 0) {
      totals_.recomputed_tokens += std::max<std::int64_t>(0, sequence.reached - cached);
    }
    sequence.computed = cached;
    sequence.cached = cached;
    sequence.state = SequenceState::kRunning;
    running_.push_back(&sequence);
    if (!sequence.counted) {
      sequence.counted = true;
      totals_.prefix_requested_tokens += sequence.input_toks;
      totals_.prefix_hit_tokens += on_device;
      totals_.prefix_recalled_tokens += recalled;
    }
    Record(sequence, tokens, now, batch);
    budget -= tokens;
  }
}

void Scheduler::Record(Sequence& sequence, std::int64_t tokens, TimeNs now, Batch& batch) {
  BatchEntry entry;
  entry.sequence = &sequence;
  entry.request_id = sequence.id;
  entry.first_position = sequence.computed;
  entry.num_tokens = static_cast<std::int32_t>(tokens);
  entry.samples = sequence.computed + tokens >= sequence.reached;
  entry.output_index = sequence.reached - sequence.input_toks;
  entry.sampling = &sequence.sampling;
  if (!sequence.token_ids.empty()) {
    entry.token_ids =
        std::span(sequence.token_ids)
            .subspan(static_cast<std::size_t>(sequence.computed), static_cast<std::size_t>(tokens));
  }
  entry.block_table = sequence.blocks;
  batch.entries.push_back(entry);
  batch.total_tokens += tokens;
  if (tokens > 1) {
    ++batch.num_prefills;
    batch.prefill_tokens += tokens;
    batch.prefill_context += sequence.computed;
  } else {
    const std::int64_t context = sequence.computed;
    batch.decode_context_min = batch.num_decodes == 0 ? context : std::min(batch.decode_context_min, context);
    batch.decode_context_max = std::max(batch.decode_context_max, context);
    batch.decode_context_sum += context;
    ++batch.num_decodes;
  }
  ++sequence.batches_in_flight;
  observer_.OnScheduled(sequence, now);
  sequence.computed += tokens;
}

void Scheduler::PreemptLast(TimeNs now, Batch& batch) {
  Sequence& victim = *running_.back();
  running_.pop_back();
  kv_cache_.Free(victim);
  victim.computed = 0;
  ++victim.preemptions;
  ++totals_.preemptions;
  ++batch.preempted;
  victim.state = SequenceState::kWaiting;
  waiting_.PushFront(victim);
  observer_.OnPreempted(victim, now);
}

void Scheduler::Complete(const Batch& batch, TimeNs now, std::span<const TokenId> sampled) {
  for (std::size_t i = 0; i < batch.entries.size(); ++i) {
    CompleteEntry(batch.entries[i], now, sampled.empty() ? nullptr : &sampled[i]);
  }
  if (!any_finished_) return;
  any_finished_ = false;
  std::erase_if(running_,
                [](const Sequence* sequence) { return sequence->state == SequenceState::kFinished; });
}

void Scheduler::CompleteEntry(const BatchEntry& entry, TimeNs now, const TokenId* token) {
  Sequence& sequence = *entry.sequence;
  --sequence.batches_in_flight;
  if (sequence.state == SequenceState::kFinished) return;
  const std::int64_t computed =
      policy_.completion_reads_latest_progress ? sequence.computed : entry.first_position + entry.num_tokens;
  const bool prefill_done = sequence.prefilling && computed >= sequence.input_toks;
  if (prefill_done) {
    sequence.prefilling = false;
    totals_.prefill_work_tokens += entry.num_tokens + sequence.cached;
    totals_.prompt_tokens += sequence.input_toks;
    totals_.prompt_tokens_cached += sequence.cached;
    observer_.OnPrefillDone(sequence, now);
  } else if (entry.num_tokens > 1) {
    totals_.prefill_work_tokens += entry.num_tokens;
  }
  if (policy_.prefill_only && prefill_done) {
    ++sequence.reached;
    Finish(sequence, now);
    return;
  }
  if (computed < sequence.reached) return;
  AppendToken(sequence, token);
  ++totals_.generated_tokens;
  observer_.OnToken(sequence, now, token);
  if (sequence.reached >= sequence.limit()) Finish(sequence, now);
}

void Scheduler::Finish(Sequence& sequence, TimeNs now) {
  // With several batches in flight it may have been preempted since this one was built.
  if (sequence.state == SequenceState::kWaiting) waiting_.Remove(sequence);
  kv_cache_.Free(sequence);
  sequence.state = SequenceState::kFinished;
  any_finished_ = true;
  observer_.OnFinished(sequence, now);
}

void Scheduler::AppendToken(Sequence& sequence, const TokenId* token) {
  ++sequence.reached;
  if (policy_.outputs_known_ahead || token == nullptr || sequence.token_ids.empty()) return;
  sequence.token_ids.push_back(*token);
  ExtendChain(sequence);
}

void Scheduler::ExtendChain(Sequence& sequence) const {
  if (!config_.enable_prefix_caching) return;
  ExtendHashChain(sequence.token_ids, config_.block_size, sequence.hash_chain);
}

}  // namespace plumbline
