#include "tests/fakes/fake_engine.h"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "engine/base/error.h"

namespace plumbline {
namespace {

constexpr const char* kLastWords = "engine exited, signal 9";

void Require(bool held, const char* rule) {
  if (!held) throw std::logic_error(std::string("engine interface misused: ") + rule);
}

}  // namespace

void FakeEngine::Submit(std::vector<Request> requests, EventSink& sink) {
  if (on_submit) on_submit();
  ThrowIfDead();
  Require(!requests.empty(), "an empty Submit");
  submissions.push_back(requests);
  for (Request& request : requests) {
    Require(seen_.insert(request.id).second, "an id was submitted twice");
    Require(request.due_ns >= last_due_ns_, "requests are not sent in the order of their due times");
    Require(static_cast<std::int64_t>(request.prompt_token_ids.size()) == request.input_toks,
            "input_toks differs from the number of ids");
    last_due_ns_ = request.due_ns;
    const RequestId id = request.id;
    const TimeNs arrival_ns = std::max(request.due_ns, now_ns_);
    running_[id] = {std::move(request), &sink, 0};
    At(arrival_ns, {id, Act::kArrive});
  }
}

void FakeEngine::Cancel(RequestId id) {
  cancelled.push_back(id);
  if (!script_.ignores_cancel && running_.contains(id)) Finish(now_ns_, id, FinishReason::kCancelled);
}

Counters FakeEngine::Sample() const {
  ThrowIfDead();
  Counters counters = counters_;
  counters.running = static_cast<std::int64_t>(running_.size());
  counters.waiting = 0;
  counters.kv_cache_usage = running_.empty() ? 0.0 : 0.25;
  return counters;
}

std::vector<StepRecord> FakeEngine::TakeSteps() {
  ThrowIfDead();
  return std::exchange(steps_, {});
}

std::optional<TimeNs> FakeEngine::NextEventTime() const {
  if (dead_) return std::nullopt;
  std::optional<TimeNs> next;
  if (!pending_.empty()) next = pending_.begin()->first;
  if (script_.dies_at_ns && (!next || *script_.dies_at_ns < *next)) next = script_.dies_at_ns;
  return next;
}

void FakeEngine::AdvanceTo(TimeNs now) {
  Require(now >= now_ns_, "time goes back");
  while (!dead_ && !pending_.empty() && pending_.begin()->first <= now) {
    const auto [time_ns, pending] = *pending_.begin();
    DieIfTime(time_ns);
    if (dead_) break;
    pending_.erase(pending_.begin());
    now_ns_ = std::max(now_ns_, time_ns);
    if (running_.contains(pending.id)) Do(time_ns, pending);
  }
  DieIfTime(now);
  now_ns_ = now;
}

void FakeEngine::Do(TimeNs time_ns, const Pending& pending) {
  Running& running = running_.at(pending.id);
  if (pending.act == Act::kArrive) {
    if (script_.refused.contains(pending.id)) {
      return Finish(time_ns, pending.id, FinishReason::kRefused, "prompt too long");
    }
    if (script_.tells_queued) {
      Emit(time_ns, running, EventKind::kQueued);
      Emit(time_ns, running, EventKind::kScheduled, script_.cached_toks);
    }
    return At(time_ns + script_.ttft_ns, {pending.id, Act::kTokens});
  }
  if (script_.failing.contains(pending.id)) {
    return Finish(time_ns, pending.id, FinishReason::kError, "out of memory");
  }
  const std::int64_t wanted = running.request.output_toks + script_.extra_toks;
  const auto count =
      static_cast<std::uint32_t>(std::min<std::int64_t>(script_.bundle, wanted - running.generated));
  ids_.clear();
  for (std::uint32_t k = 0; k < count; ++k) ids_.push_back(TokenOf(pending.id, running.generated + k));
  if (running.generated == 0) counters_.prompt_tokens += running.request.input_toks;
  counters_.generation_tokens += count;
  running.generated += count;
  steps_.push_back({.start_ns = time_ns, .decodes = static_cast<std::int32_t>(count)});
  Emit(time_ns, running, EventKind::kTokens, count);
  if (script_.hang_after && ++token_events_ >= *script_.hang_after) return pending_.clear();
  if (running.generated >= wanted) return Finish(time_ns, pending.id, FinishReason::kLength);
  At(time_ns + script_.itl_ns, {pending.id, Act::kTokens});
}

void FakeEngine::Emit(TimeNs time_ns, const Running& running, EventKind kind, std::uint32_t count,
                      FinishReason reason, const char* text) {
  Event event;
  event.id = running.request.id;
  event.time_ns = time_ns;
  event.kind = kind;
  event.reason = reason;
  event.count = count;
  if (kind == EventKind::kTokens && script_.tells_ids) event.token_ids = ids_.data();
  event.text = text;
  running.sink->OnEvents(std::span(&event, 1));
}

void FakeEngine::Finish(TimeNs time_ns, RequestId id, FinishReason reason, const char* text) {
  const Running running = std::move(running_.at(id));
  running_.erase(id);
  Emit(time_ns, running, EventKind::kFinished, 0, reason, text);
}

void FakeEngine::DieIfTime(TimeNs now_ns) {
  if (dead_ || !script_.dies_at_ns || *script_.dies_at_ns > now_ns) return;
  while (!running_.empty()) {
    Finish(*script_.dies_at_ns, running_.begin()->first, FinishReason::kError, kLastWords);
  }
  pending_.clear();
  dead_ = true;
}

void FakeEngine::ThrowIfDead() const {
  if (dead_) throw Error(ExitCode::kEngineFailed, kLastWords);
}

ThreadedFakeEngine::ThreadedFakeEngine(FakeScript script)
    : engine_(std::move(script)), thread_([this](const std::stop_token& stop) { Loop(stop); }) {}

void ThreadedFakeEngine::Loop(const std::stop_token& stop) {
  const MonotonicClock clock;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    engine_.AdvanceTo(clock.NowNs());
    const auto due = [&] { return engine_.NextEventTime().value_or(clock.NowNs() + kNsPerSecond); };
    const TimeNs wait_ns = due() - clock.NowNs();
    if (wait_ns > 0) {
      changed_.wait_for(lock, stop, std::chrono::nanoseconds(wait_ns),
                        [&] { return due() <= clock.NowNs(); });
    }
  }
}

void ThreadedFakeEngine::Submit(std::vector<Request> requests, EventSink& sink) {
  const std::lock_guard lock(mutex_);
  engine_.AdvanceTo(MonotonicClock().NowNs());  // what comes in late arrives now
  engine_.Submit(std::move(requests), sink);
  changed_.notify_all();
}

void ThreadedFakeEngine::Cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  engine_.Cancel(id);
}

Counters ThreadedFakeEngine::Sample() const {
  const std::lock_guard lock(mutex_);
  return engine_.Sample();
}

bool ThreadedFakeEngine::ResetPrefixCache() {
  const std::lock_guard lock(mutex_);
  return engine_.ResetPrefixCache();
}

std::vector<StepRecord> ThreadedFakeEngine::TakeSteps() {
  const std::lock_guard lock(mutex_);
  return engine_.TakeSteps();
}

void ThreadedFakeEngine::Shutdown() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

std::vector<std::size_t> ThreadedFakeEngine::SubmissionSizes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> sizes;
  for (const auto& requests : engine_.submissions) sizes.push_back(requests.size());
  return sizes;
}

}  // namespace plumbline
