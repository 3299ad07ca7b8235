#include "engine/simulated/cluster_instance.h"

#include <algorithm>
#include <utility>

namespace plumbline {
namespace {

SchedulingPolicy PolicyOf(const InstanceSpec& spec) {
  SchedulingPolicy policy = kReferenceSimulatorPolicy;
  policy.prefill_only = spec.role == Role::kPrefill;
  return policy;
}

// The observer's view is const because it must not disturb the scheduler; the figures beside it are ours.
SimulatedSequence& Ours(const Sequence& sequence) {
  return const_cast<SimulatedSequence&>(static_cast<const SimulatedSequence&>(sequence));
}

}  // namespace

ClusterInstance::ClusterInstance(std::int64_t index, const InstanceSpec& spec, const InstancePlan& plan,
                                 const ClusterPlan& cluster, SimulationListener& listener)
    : index_(index),
      spec_(spec),
      plan_(plan),
      listener_(listener),
      scheduler_(plan.scheduler, PolicyOf(spec), *this),
      builder_(spec, plan, cluster) {}

void ClusterInstance::UseLowerTier(std::shared_ptr<LowerTier> tier) {
  lower_tier_ = std::move(tier);
  scheduler_.UseLowerTier(*lower_tier_);
}

Round& ClusterInstance::NewRound() {
  if (spare_rounds_.empty()) spare_rounds_.push_back(std::make_unique<Round>());
  rounds_.push_back(std::move(spare_rounds_.back()));
  spare_rounds_.pop_back();
  Round& round = *rounds_.back();
  Batch memory = std::move(round.batch);
  memory.Clear();
  round = Round{};
  round.batch = std::move(memory);
  return round;
}

Round* ClusterInstance::Build(TimeNs now) {
  Round& round = NewRound();
  if (!scheduler_.Schedule(now, round.batch)) {
    spare_rounds_.push_back(std::move(rounds_.back()));
    rounds_.pop_back();
    return nullptr;
  }
  round.id = next_round_++;
  round.figures = FiguresOf(round.batch, spec_.profile->cost_model);
  if (lower_tier_) round.figures.recalled_bytes = lower_tier_->TakeRecalledBytes();
  round.step = {.start_ns = now,
                .prefill_tokens = static_cast<std::int32_t>(round.batch.prefill_tokens),
                .decodes = static_cast<std::int32_t>(round.batch.num_decodes),
                .running = static_cast<std::int32_t>(scheduler_.running().size()),
                .waiting = static_cast<std::int32_t>(scheduler_.waiting().size()),
                .kv_blocks_used = static_cast<std::int32_t>(scheduler_.kv_cache().pool().num_held()),
                .preempted = static_cast<std::int32_t>(round.batch.preempted)};
  round.taken_by_start = true;
  return &round;
}

Round* ClusterInstance::BuildDummy(std::int32_t npu) {
  Round& round = NewRound();
  round.id = next_round_++;
  round.figures = {.total_tokens = 1,
                   .sequences = 1,
                   .num_decodes = 1,
                   .decode_sum = 1,
                   .decode_max = 1,
                   .decode_min = 1,
                   .group_tokens = 1};
  (npu == plan_.start_npu ? round.taken_by_start : round.taken_by_end) = true;
  return &round;
}

Round* ClusterInstance::Take(std::int32_t npu, std::int64_t id) {
  for (const auto& round : rounds_) {
    if (round->id != id) continue;
    bool& taken = npu == plan_.start_npu ? round->taken_by_start : round->taken_by_end;
    if (taken) return nullptr;
    taken = true;
    return round.get();
  }
  return nullptr;
}

void ClusterInstance::GiveBack(Round& round, std::int32_t npu) {
  (npu == plan_.start_npu ? round.taken_by_start : round.taken_by_end) = false;
}

std::vector<SimulatedSequence*> ClusterInstance::Report(std::int32_t npu, std::int64_t id, TimeNs now) {
  finished_.clear();
  const auto found =
      std::find_if(rounds_.begin(), rounds_.end(), [id](const auto& round) { return round->id == id; });
  if (found == rounds_.end()) return {};
  Round& round = **found;
  (npu == plan_.start_npu ? round.reported_by_start : round.reported_by_end) = true;
  if (!round.reported_by_start || (has_end() && !round.reported_by_end)) return {};
  scheduler_.Complete(round.batch, now, {});
  if (!round.batch.entries.empty()) {
    round.step.duration_ns = now - round.step.start_ns;
    listener_.OnStep(index_, round.step);
  }
  round.programs.clear();
  spare_rounds_.push_back(std::move(*found));
  rounds_.erase(found);
  return std::exchange(finished_, {});
}

void ClusterInstance::RecordDone(std::int32_t npu) {
  (npu == plan_.start_npu ? start_done_ : end_done_) = true;
  done_ = start_done_ && (end_done_ || !has_end());
}

InstanceHeartbeat ClusterInstance::State() const {
  InstanceHeartbeat state;
  state.running = static_cast<std::int64_t>(scheduler_.running().size());
  state.waiting = scheduler_.waiting().size();  // they are routed when they arrive
  const BlockPool& pool = scheduler_.kv_cache().pool();
  state.used_bytes =
      plan_.weight_bytes + (pool.num_held() + pool.num_free_indexed()) * plan_.kv_bytes_per_block;
  const SchedulerTotals& totals = scheduler_.totals();
  state.prefix_requested_tokens = totals.prefix_requested_tokens;
  state.prefix_hit_tokens = totals.prefix_hit_tokens;
  state.prefix_counted = plan_.scheduler.enable_prefix_caching && totals.prefix_requested_tokens > 0;
  return state;
}

void ClusterInstance::OnScheduled(const Sequence& sequence, TimeNs now) {
  SimulatedSequence& ours = Ours(sequence);
  if (ours.prefilling) ours.row.queuing_delay_ns = now - ours.arrival_ns;
  listener_.OnScheduled(ours, now);
}

void ClusterInstance::OnPreempted(const Sequence& sequence, TimeNs now) {
  listener_.OnPreempted(Ours(sequence), now);
}

void ClusterInstance::OnPrefillDone(const Sequence& sequence, TimeNs now) {
  SimulatedSequence& ours = Ours(sequence);
  ours.row.ttft_ns = now - ours.arrival_ns;
  ours.last_token_ns = now;
  ours.first_token_pending = true;
  // Where prefill is split off, the first token comes out here, and the decode side goes on from it.
  if (spec_.role == Role::kPrefill) {
    ours.first_token_pending = false;
    listener_.OnToken(ours, now);
  }
}

void ClusterInstance::OnToken(const Sequence& sequence, TimeNs now, const TokenId*) {
  SimulatedSequence& ours = Ours(sequence);
  if (ours.first_token_pending) {
    ours.first_token_pending = false;
  } else {
    ours.row.itl_ns.push_back(now - ours.last_token_ns);
    ours.last_token_ns = now;
  }
  listener_.OnToken(ours, now);
}

void ClusterInstance::OnFinished(Sequence& sequence, TimeNs now) {
  SimulatedSequence& ours = Ours(sequence);
  ours.row.end_ns = now;
  finished_.push_back(&ours);
}

}  // namespace plumbline
