#include "engine/simulated/simulated_loop.h"

#include <algorithm>
#include <utility>

namespace plumbline {
namespace {

SimulationOptions OpenEnded(SimulationOptions options) {
  options.open_ended = true;
  return options;
}

}  // namespace

struct SimulatedLoop::Prepared final : LoopRequest {
  SimulationRequest request;
  EventSink* sink = nullptr;
  std::string refusal;
};

SimulatedLoop::SimulatedLoop(std::shared_ptr<const ClusterSpec> cluster, SimulationOptions options,
                             RequestLimits limits)
    : cluster_(std::move(cluster)),
      limits_(std::move(limits)),
      simulation_(*cluster_, OpenEnded(options), *this) {}

SimulatedLoop::~SimulatedLoop() = default;

std::unique_ptr<LoopRequest> SimulatedLoop::Prepare(Request request, EventSink& sink) const {
  auto prepared = std::make_unique<Prepared>();
  prepared->due_ns = request.due_ns;
  prepared->sink = &sink;
  prepared->refusal = RefusalOf(request, limits_);
  SimulationRequest& simulated = prepared->request;
  simulated.id = request.id;
  simulated.input_toks = request.input_toks;
  simulated.output_toks = request.output_toks;
  simulated.token_ids = std::move(request.prompt_token_ids);
  if (!simulated.token_ids.empty()) {
    simulated.token_ids.insert(simulated.token_ids.end(), request.recorded_output_token_ids.begin(),
                               request.recorded_output_token_ids.end());
  }
  if (prepared->refusal.empty()) prepared->refusal = simulation_.NeverFits(simulated);
  return prepared;
}

void SimulatedLoop::Submit(std::unique_ptr<LoopRequest> request, TimeNs arrival_ns) {
  std::unique_ptr<Prepared> prepared(static_cast<Prepared*>(request.release()));
  if (prepared->refusal.empty() && live_.contains(prepared->request.id)) {
    prepared->refusal = "a request with id " + std::to_string(prepared->request.id) + " is in flight already";
  }
  if (!prepared->refusal.empty()) {
    refused_.push_back(std::move(prepared));
    return;
  }
  live_[prepared->request.id] = {.sink = prepared->sink, .announced = false};
  prepared->request.arrival_ns = arrival_ns;
  std::vector<SimulationRequest> one;
  one.push_back(std::move(prepared->request));
  simulation_.Add(std::move(one));
}

void SimulatedLoop::Cancel(RequestId id) {
  to_cancel_.push_back(id);
}

void SimulatedLoop::Step(TimeNs now) {
  last_step_ns_ = now;
  for (const auto& refused : refused_) {
    outbox_.Post(*refused->sink, {.id = refused->request.id,
                                  .time_ns = now,
                                  .kind = EventKind::kFinished,
                                  .reason = FinishReason::kRefused,
                                  .text = refused->refusal});
  }
  for (const RequestId id : to_cancel_) {
    if (!live_.contains(id)) continue;
    simulation_.Cancel(id);
    Post(id, {.time_ns = now,
              .kind = EventKind::kFinished,
              .reason = FinishReason::kCancelled,
              .text = "cancelled"});
    live_.erase(id);
  }
  to_cancel_.clear();
  for (auto next = simulation_.NextTurn(); next && *next <= now; next = simulation_.NextTurn()) {
    simulation_.Turn();
  }
  Deliver();
}

std::optional<TimeNs> SimulatedLoop::NextEventTime() const {
  if (!refused_.empty() || !to_cancel_.empty()) return last_step_ns_;
  const std::optional<TimeNs> next = simulation_.NextTurn();
  return next ? std::max(*next, last_step_ns_) : next;
}

void SimulatedLoop::FinishAll(TimeNs now, FinishReason reason, const std::string& text) {
  for (const auto& refused : refused_) {
    outbox_.Post(*refused->sink, {.id = refused->request.id,
                                  .time_ns = now,
                                  .kind = EventKind::kFinished,
                                  .reason = FinishReason::kRefused,
                                  .text = refused->refusal});
  }
  std::vector<RequestId> open;
  for (const auto& [id, live] : live_) open.push_back(id);
  std::sort(open.begin(), open.end());
  for (const RequestId id : open) {
    simulation_.Cancel(id);
    Post(id, {.time_ns = now, .kind = EventKind::kFinished, .reason = reason, .text = text});
  }
  live_.clear();
  to_cancel_.clear();
  Deliver();
}

bool SimulatedLoop::ResetPrefixCache() {
  const auto& instances = simulation_.instances();
  const bool idle = std::all_of(instances.begin(), instances.end(), [](const auto& instance) {
    return instance->scheduler().kv_cache().pool().num_held() == 0;
  });
  if (!idle) return false;
  for (const auto& instance : instances) instance->scheduler().ResetPrefixCache();
  return true;
}

Counters SimulatedLoop::CurrentCounters() const {
  Counters counters;
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t used = 0;
  std::int64_t blocks = 0;
  for (const auto& instance : simulation_.instances()) {
    const Scheduler& scheduler = instance->scheduler();
    const SchedulerTotals& totals = scheduler.totals();
    counters.prompt_tokens += totals.prompt_tokens;
    counters.prompt_tokens_cached += totals.prompt_tokens_cached;
    counters.generation_tokens += totals.generated_tokens;
    counters.preemptions += totals.preemptions;
    running += static_cast<std::int64_t>(scheduler.running().size());
    waiting += scheduler.waiting().size();
    used += scheduler.kv_cache().pool().num_held();
    blocks += scheduler.kv_cache().pool().num_blocks();
  }
  counters.prompt_tokens_computed = counters.prompt_tokens - counters.prompt_tokens_cached;
  counters.running = running;
  counters.waiting = waiting;
  counters.kv_blocks_used = used;
  counters.kv_cache_usage = static_cast<double>(used) / static_cast<double>(blocks);
  return counters;
}

void SimulatedLoop::TakeSteps(std::vector<StepRecord>& records) {
  records.insert(records.end(), steps_.begin(), steps_.end());
  steps_.clear();
}

void SimulatedLoop::OnQueued(const SimulatedSequence& sequence, TimeNs now) {
  Post(sequence.id, {.time_ns = now, .kind = EventKind::kQueued});
}

void SimulatedLoop::OnScheduled(const SimulatedSequence& sequence, TimeNs now) {
  Live& live = live_.at(sequence.id);
  if (live.announced) return;
  live.announced = true;
  Post(sequence.id,
       {.time_ns = now, .kind = EventKind::kScheduled, .count = static_cast<std::uint32_t>(sequence.cached)});
}

void SimulatedLoop::OnPreempted(const SimulatedSequence& sequence, TimeNs now) {
  Post(sequence.id, {.time_ns = now, .kind = EventKind::kPreempted});
}

void SimulatedLoop::OnToken(const SimulatedSequence& sequence, TimeNs now) {
  Post(sequence.id, {.time_ns = now, .kind = EventKind::kTokens, .count = 1});
}

void SimulatedLoop::OnRow(std::int64_t, SimulatedRow row, TimeNs now) {
  Post(row.id, {.time_ns = now, .kind = EventKind::kFinished, .reason = FinishReason::kLength});
  ended_.push_back(row.id);
}

void SimulatedLoop::OnStep(std::int64_t, const StepRecord& step) {
  steps_.push_back(step);
}

void SimulatedLoop::Post(RequestId id, Event event) {
  event.id = id;
  outbox_.Post(*live_.at(id).sink, event);
}

void SimulatedLoop::Deliver() {
  Publish();
  outbox_.Deliver();
  for (const RequestId id : ended_) live_.erase(id);
  ended_.clear();
  refused_.clear();
}

}  // namespace plumbline
