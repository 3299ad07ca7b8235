#include "engine/core/step_loop.h"

#include <fmt/format.h>
#include <algorithm>
#include <stdexcept>

namespace plumbline {

StepLoop::StepLoop(const SchedulerConfig& config, const SchedulingPolicy& policy, const RequestLimits& limits,
                   std::unique_ptr<Executor> executor, TimeMode mode)
    : config_(config),
      policy_(policy),
      limits_(limits),
      executor_(std::move(executor)),
      mode_(mode),
      scheduler_(config, policy, *this) {
  steps_.reserve(4096);
}

std::unique_ptr<LoopRequest> StepLoop::Prepare(Request request, EventSink& sink) const {
  return MakeServedRequest(std::move(request), sink, limits_, config_, policy_);
}

void StepLoop::Submit(std::unique_ptr<LoopRequest> prepared, TimeNs arrival_ns) {
  std::unique_ptr<ServedRequest> request(static_cast<ServedRequest*>(prepared.release()));
  request->arrival_ns = arrival_ns;
  if (request->refusal.empty() && live_.contains(request->id)) {
    request->refusal = fmt::format("a request with id {} is in flight already", request->id);
  }
  if (!request->refusal.empty()) {
    refused_.push_back(std::move(request));
    return;
  }
  ServedRequest& taken = *request;
  live_.emplace(taken.id, std::move(request));
  arriving_.InsertByArrival(taken);
}

void StepLoop::Cancel(RequestId id) {
  to_cancel_.push_back(id);
}

void StepLoop::Step(TimeNs now) {
  last_step_ns_ = now;
  if (batch_in_flight_) {
    if (now < batch_ends_ns_) return;
    CompleteBatch(mode_ == TimeMode::kVirtual ? batch_ends_ns_ : now);
  }
  CancelAsked(now);
  TakeInArrived(now);
  const bool started = scheduler_.Schedule(now, batch_);
  Deliver();
  if (started) {
    StartBatch(now);
  } else if (!scheduler_.idle()) {
    throw std::logic_error("requests wait, nothing runs, and none of them can be scheduled");
  }
}

std::optional<TimeNs> StepLoop::NextEventTime() const {
  if (batch_in_flight_) return batch_ends_ns_;
  if (!refused_.empty() || !to_cancel_.empty()) return last_step_ns_;
  if (arriving_.empty()) return std::nullopt;
  const TimeNs arrival = arriving_.front()->arrival_ns;
  if (policy_.idle_poll_ns == 0) return std::max(arrival, last_step_ns_);
  const TimeNs away = std::max<TimeNs>(1, arrival - last_step_ns_);
  const TimeNs polls = (away + policy_.idle_poll_ns - 1) / policy_.idle_poll_ns;
  return last_step_ns_ + polls * policy_.idle_poll_ns;
}

void StepLoop::CompleteBatch(TimeNs now) {
  batch_in_flight_ = false;
  scheduler_.Complete(batch_, now, sampled_);
  step_.duration_ns = now - step_.start_ns;
  steps_.push_back(step_);
}

void StepLoop::CancelAsked(TimeNs now) {
  for (const RequestId id : to_cancel_) {
    const auto found = live_.find(id);
    if (found == live_.end() || found->second->state == SequenceState::kFinished) continue;
    ServedRequest& request = *found->second;
    if (request.state == SequenceState::kIdle) arriving_.Remove(request);
    scheduler_.Remove(request);
    Finish(request, now, FinishReason::kCancelled, "cancelled");
  }
  to_cancel_.clear();
}

void StepLoop::TakeInArrived(TimeNs now) {
  for (const auto& request : refused_) {
    Post(*request, {.time_ns = now,
                    .kind = EventKind::kFinished,
                    .reason = FinishReason::kRefused,
                    .text = request->refusal});
  }
  while (!arriving_.empty() && arriving_.front()->arrival_ns <= now) {
    Sequence& sequence = *arriving_.front();
    arriving_.Remove(sequence);
    scheduler_.Enqueue(sequence);
    Post(sequence, {.time_ns = now, .kind = EventKind::kQueued});
  }
}

void StepLoop::StartBatch(TimeNs now) {
  step_ = {.start_ns = now,
           .prefill_tokens = static_cast<std::int32_t>(batch_.prefill_tokens),
           .decodes = static_cast<std::int32_t>(batch_.num_decodes),
           .running = static_cast<std::int32_t>(scheduler_.running().size()),
           .waiting = static_cast<std::int32_t>(scheduler_.waiting().size()),
           .kv_blocks_used = static_cast<std::int32_t>(scheduler_.kv_cache().pool().num_held()),
           .preempted = static_cast<std::int32_t>(batch_.preempted)};
  sampled_.resize(executor_->TellsTokenIds() ? batch_.entries.size() : 0);
  const TimeNs length = executor_->Execute(batch_, sampled_);
  batch_ends_ns_ = mode_ == TimeMode::kVirtual ? now + length : now;
  batch_in_flight_ = true;
}

void StepLoop::FinishAll(TimeNs now, FinishReason reason, const std::string& text) {
  batch_in_flight_ = false;
  batch_.Clear();
  TakeInArrived(now);
  // In the order of their ids, so that a run that was cut short reads the same each time.
  std::vector<Sequence*> open;
  for (const auto& [id, request] : live_) {
    if (request->state != SequenceState::kFinished) open.push_back(request.get());
  }
  std::sort(open.begin(), open.end(), [](const Sequence* a, const Sequence* b) { return a->id < b->id; });
  for (Sequence* sequence : open) {
    if (sequence->state == SequenceState::kIdle) arriving_.Remove(*sequence);
    scheduler_.Remove(*sequence);
    Finish(*sequence, now, reason, text);
  }
  to_cancel_.clear();
  Deliver();
}

Counters StepLoop::CurrentCounters() const {
  const SchedulerTotals& totals = scheduler_.totals();
  const BlockPool& pool = scheduler_.kv_cache().pool();
  Counters counters;
  counters.prompt_tokens = totals.prompt_tokens;
  counters.prompt_tokens_cached = totals.prompt_tokens_cached;
  counters.prompt_tokens_computed = totals.prompt_tokens - totals.prompt_tokens_cached;
  counters.generation_tokens = totals.generated_tokens;
  counters.preemptions = totals.preemptions;
  counters.running = static_cast<std::int64_t>(scheduler_.running().size());
  counters.waiting = scheduler_.waiting().size();
  counters.kv_blocks_used = pool.num_held();
  counters.kv_cache_usage = static_cast<double>(pool.num_held()) / static_cast<double>(pool.num_blocks());
  return counters;
}

void StepLoop::TakeSteps(std::vector<StepRecord>& records) {
  records.insert(records.end(), steps_.begin(), steps_.end());
  steps_.clear();
}

void StepLoop::OnScheduled(const Sequence& sequence, TimeNs now) {
  if (static_cast<const ServedRequest&>(sequence).announced) return;
  live_.at(sequence.id)->announced = true;
  Post(sequence,
       {.time_ns = now, .kind = EventKind::kScheduled, .count = static_cast<std::uint32_t>(sequence.cached)});
}

void StepLoop::OnPreempted(const Sequence& sequence, TimeNs now) {
  Post(sequence, {.time_ns = now, .kind = EventKind::kPreempted});
}

void StepLoop::OnToken(const Sequence& sequence, TimeNs now, const TokenId* token) {
  Post(sequence, {.time_ns = now, .kind = EventKind::kTokens, .count = 1, .token_ids = token});
}

void StepLoop::OnFinished(Sequence& sequence, TimeNs now) {
  Finish(sequence, now, FinishReason::kLength, {});
}

void StepLoop::Finish(Sequence& sequence, TimeNs now, FinishReason reason, std::string_view text) {
  Post(sequence, {.time_ns = now, .kind = EventKind::kFinished, .reason = reason, .text = text});
  ended_.push_back(sequence.id);
}

void StepLoop::Post(const Sequence& sequence, Event event) {
  event.id = sequence.id;
  outbox_.Post(*static_cast<const ServedRequest&>(sequence).sink, event);
}

void StepLoop::Deliver() {
  Publish();
  outbox_.Deliver();
  for (const RequestId id : ended_) live_.erase(id);
  ended_.clear();
  refused_.clear();
}

}  // namespace plumbline
