#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/batch.h"
#include "engine/core/kv_cache.h"
#include "engine/core/scheduler_config.h"
#include "engine/core/sequence.h"
#include "engine/core/waiting_queue.h"

namespace plumbline {

// Is told what becomes of the sequences, from inside Schedule and Complete. Must not call the scheduler.
class SchedulerObserver {
 public:
  virtual ~SchedulerObserver() = default;
  // Part of the sequence goes into the batch that is being built.
  virtual void OnScheduled(const Sequence& sequence, TimeNs now) = 0;
  // Its blocks are freed, it waits again.
  virtual void OnPreempted(const Sequence& sequence, TimeNs now) = 0;
  // The prompt is computed; called before the first token's OnToken.
  virtual void OnPrefillDone(const Sequence& sequence, TimeNs now) = 0;
  // An output token came out; `token` is null when the executor tells no ids. Valid until Complete's span is.
  virtual void OnToken(const Sequence& sequence, TimeNs now, const TokenId* token) = 0;
  // All tokens came out (or the prompt is computed, where it is handed over then); the last call for this
  // sequence, which must live until Complete returns.
  virtual void OnFinished(Sequence& sequence, TimeNs now) = 0;
};

// Totals since the start.
struct SchedulerTotals {
  // Once a request, when its prefill completes: prompt = computed + cached.
  std::int64_t prompt_tokens = 0;
  std::int64_t prompt_tokens_cached = 0;
  // Every token that passed through a prefill, with prefix hits, and again after a preemption (the reference
  // simulator's prompt throughput).
  std::int64_t prefill_work_tokens = 0;
  std::int64_t generated_tokens = 0;
  std::int64_t preemptions = 0;
  std::int64_t recomputed_tokens = 0;
  // Prefix statistics, once a request at its first admission.
  std::int64_t prefix_requested_tokens = 0;
  std::int64_t prefix_hit_tokens = 0;       // on the device
  std::int64_t prefix_recalled_tokens = 0;  // from a lower tier, beyond those
};

// Continuous batching as vLLM V1 does it: first come first served, running requests before waiting ones, a
// token budget a step, chunked prefill, preemption of the latest by recomputation. Knows no
// clock: times are what the caller says. One thread.
class Scheduler {
 public:
  // Throws Error(kBadInput) for a config that makes no scheduler.
  Scheduler(const SchedulerConfig& config, const SchedulingPolicy& policy, SchedulerObserver& observer);

  // Prompts are served from `tier`, too, where the device's own prefix cache ends. It must stay.
  void UseLowerTier(KvLowerTier& tier) { kv_cache_.UseLowerTier(tier); }

  // Takes a request in. It is admitted by a Schedule at its arrival or later.
  void Enqueue(Sequence& sequence);

  // Takes in a request that was prefilled elsewhere, straight into the running list, with room for one more
  // token. False, and nothing changed, when the free blocks do not suffice.
  bool EnqueuePrefilled(Sequence& sequence);

  // Takes a request out wherever it is; it comes out of no later batch. A batch in flight may still hold it
  // (batches_in_flight).
  void Remove(Sequence& sequence);

  // Builds the next batch into `batch`, whose memory is reused. False, and an empty batch, when there is
  // nothing to compute. Several batches may be in flight; a request that has nothing left to compute until
  // one of them completes is passed over.
  bool Schedule(TimeNs now, Batch& batch);

  // Accounts for a computed batch; batches complete in the order in which they were built. `sampled` has one
  // place an entry, or is empty when the executor tells no ids.
  void Complete(const Batch& batch, TimeNs now, std::span<const TokenId> sampled);

  const std::vector<Sequence*>& running() const { return running_; }
  const WaitingQueue& waiting() const { return waiting_; }
  bool idle() const { return running_.empty() && waiting_.empty(); }
  const SchedulerTotals& totals() const { return totals_; }
  const SchedulerConfig& config() const { return config_; }
  const KvCache& kv_cache() const { return kv_cache_; }
  // False while a sequence holds a block.
  bool ResetPrefixCache() { return kv_cache_.ResetPrefixCache(); }

 private:
  std::int64_t TokensWanted(const Sequence& sequence, std::int64_t cached) const;
  bool ScheduleRunning(TimeNs now, Batch& batch, std::int64_t& budget);
  void ScheduleWaiting(TimeNs now, Batch& batch, std::int64_t& budget);
  void Record(Sequence& sequence, std::int64_t tokens, TimeNs now, Batch& batch);
  void PreemptLast(TimeNs now, Batch& batch);
  void CompleteEntry(const BatchEntry& entry, TimeNs now, const TokenId* token);
  void AppendToken(Sequence& sequence, const TokenId* token);
  void ExtendChain(Sequence& sequence) const;
  void Finish(Sequence& sequence, TimeNs now);

  SchedulerConfig config_;
  SchedulingPolicy policy_;
  SchedulerObserver& observer_;
  KvCache kv_cache_;
  std::vector<Sequence*> running_;
  WaitingQueue waiting_;
  SchedulerTotals totals_;
  std::int64_t next_batch_id_ = 0;
  bool any_finished_ = false;
};

}  // namespace plumbline
