#include "engine/scripted/scripted_loop.h"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

#include "engine/core/request_limits.h"

namespace plumbline {
namespace {

// Long enough for the bundles that make sense; a longer one is told in pieces.
constexpr std::int64_t kAnswerLength = 4096;

std::vector<TokenId> Answer(const std::optional<std::int64_t>& vocab_size) {
  std::vector<TokenId> answer(kAnswerLength);
  const std::int64_t vocabulary = vocab_size.value_or(kAnswerLength);
  for (std::int64_t i = 0; i < kAnswerLength; ++i) {
    answer[static_cast<std::size_t>(i)] = static_cast<TokenId>(i % vocabulary);
  }
  return answer;
}

RequestLimits LimitsOf(const ScriptedOptions& options) {
  RequestLimits limits;
  limits.vocab_size = options.vocab_size;
  limits.max_model_len = options.max_model_len;
  return limits;
}

}  // namespace

struct ScriptedLoop::Played final : LoopRequest {
  RequestId id = 0;
  std::int64_t order = 0;
  std::int64_t input_toks = 0;
  std::int64_t output_toks = 0;
  Script script;
  EventSink* sink = nullptr;
  std::string refusal;
  bool announced = false;
  std::int64_t produced = 0;
  TimeNs next_ns = 0;
};

ScriptedLoop::ScriptedLoop(ScriptedOptions options)
    : options_(std::move(options)), answer_(Answer(options_.vocab_size)) {}

ScriptedLoop::~ScriptedLoop() = default;

std::unique_ptr<LoopRequest> ScriptedLoop::Prepare(Request request, EventSink& sink) const {
  auto played = std::make_unique<Played>();
  played->id = request.id;
  played->due_ns = request.due_ns;
  played->input_toks = request.input_toks;
  played->output_toks = request.output_toks;
  played->sink = &sink;
  played->refusal = RefusalOf(request, LimitsOf(options_));
  if (played->refusal.empty()) played->script = options_.script(request);
  return played;
}

void ScriptedLoop::Submit(std::unique_ptr<LoopRequest> prepared, TimeNs arrival_ns) {
  std::unique_ptr<Played> played(static_cast<Played*>(prepared.release()));
  played->order = next_order_++;
  played->next_ns = arrival_ns;
  if (played->refusal.empty() && live_.contains(played->id)) {
    played->refusal = fmt::format("a request with id {} is in flight already", played->id);
  }
  if (!played->refusal.empty()) {
    refused_.push_back(std::move(played));
    return;
  }
  due_.push_back({.time_ns = arrival_ns, .order = played->order, .id = played->id});
  std::push_heap(due_.begin(), due_.end(), std::greater<>());
  live_.emplace(played->id, std::move(played));
}

void ScriptedLoop::Cancel(RequestId id) {
  to_cancel_.push_back(id);
}

void ScriptedLoop::Step(TimeNs now) {
  last_step_ns_ = now;
  for (const RequestId id : to_cancel_) {
    if (const auto found = live_.find(id); found != live_.end()) {
      Finish(*found->second, now, FinishReason::kCancelled, "cancelled");
    }
  }
  to_cancel_.clear();
  for (const auto& request : refused_) {
    Post(*request, {.time_ns = now,
                    .kind = EventKind::kFinished,
                    .reason = FinishReason::kRefused,
                    .text = request->refusal});
  }
  while (!dies_ && !due_.empty() && due_.front().time_ns <= now) {
    std::pop_heap(due_.begin(), due_.end(), std::greater<>());
    const Due due = due_.back();
    due_.pop_back();
    const auto found = live_.find(due.id);
    if (found != live_.end() && found->second->order == due.order) PlayUntilLater(*found->second, now);
  }
  Deliver();
  if (dies_) {
    throw std::runtime_error(fmt::format("its script ends after {} tokens", *options_.dies_after_tokens));
  }
}

std::optional<TimeNs> ScriptedLoop::NextEventTime() const {
  if (!to_cancel_.empty() || !refused_.empty()) return last_step_ns_;
  if (due_.empty()) return std::nullopt;
  return std::max(due_.front().time_ns, last_step_ns_);
}

void ScriptedLoop::FinishAll(TimeNs now, FinishReason reason, const std::string& text) {
  std::vector<Played*> open;
  for (const auto& request : refused_) open.push_back(request.get());
  for (const auto& [id, request] : live_) open.push_back(request.get());
  std::sort(open.begin(), open.end(), [](const Played* a, const Played* b) { return a->order < b->order; });
  for (Played* request : open) Finish(*request, now, reason, text);
  due_.clear();
  to_cancel_.clear();
  Deliver();
}

Counters ScriptedLoop::CurrentCounters() const {
  Counters counters = counters_;
  counters.running = static_cast<std::int64_t>(live_.size());
  counters.waiting = 0;
  return counters;
}

// Everything that the script says up to now; what comes later goes back into the heap. The next time counts
// from when the script had the last one, so that late steps do not add up.
void ScriptedLoop::PlayUntilLater(Played& request, TimeNs now) {
  if (!request.announced) {
    request.announced = true;
    Post(request, {.time_ns = now, .kind = EventKind::kQueued});
    Post(request, {.time_ns = now, .kind = EventKind::kScheduled});
    request.next_ns += request.script.ttft_ns;
  }
  while (request.next_ns <= now) {
    EmitTokens(request, now);
    if (dies_) return;
    if (request.script.fails_after_tokens && request.produced >= *request.script.fails_after_tokens) {
      return Finish(request, now, FinishReason::kError, "failed as its script says");
    }
    if (request.produced >= request.output_toks) return Finish(request, now, FinishReason::kLength, {});
    const std::int64_t next = std::min(request.script.bundle, request.output_toks - request.produced);
    request.next_ns += next * request.script.itl_ns;
  }
  due_.push_back({.time_ns = request.next_ns, .order = request.order, .id = request.id});
  std::push_heap(due_.begin(), due_.end(), std::greater<>());
}

void ScriptedLoop::EmitTokens(Played& request, TimeNs now) {
  std::int64_t count = request.produced == 0 ? 1 : request.script.bundle;
  count = std::min(count, request.output_toks - request.produced);
  if (request.script.fails_after_tokens) {
    count = std::min(count, *request.script.fails_after_tokens - request.produced);
  }
  if (options_.dies_after_tokens) {
    count = std::min(count, *options_.dies_after_tokens - counters_.generation_tokens);
  }
  if (request.produced == 0 && count > 0) {
    counters_.prompt_tokens += request.input_toks;
    counters_.prompt_tokens_computed += request.input_toks;
  }
  while (count > 0) {
    const std::int64_t first = request.produced % kAnswerLength;
    const std::int64_t piece = std::min(count, kAnswerLength - first);
    Post(request, {.time_ns = now,
                   .kind = EventKind::kTokens,
                   .count = static_cast<std::uint32_t>(piece),
                   .token_ids = &answer_[static_cast<std::size_t>(first)]});
    request.produced += piece;
    counters_.generation_tokens += piece;
    count -= piece;
  }
  dies_ = options_.dies_after_tokens && counters_.generation_tokens >= *options_.dies_after_tokens;
}

void ScriptedLoop::Finish(Played& request, TimeNs now, FinishReason reason, std::string_view text) {
  Post(request, {.time_ns = now, .kind = EventKind::kFinished, .reason = reason, .text = text});
  const auto found = live_.find(request.id);
  if (found == live_.end() || found->second.get() != &request) return;
  ended_.push_back(std::move(found->second));
  live_.erase(found);
}

void ScriptedLoop::Post(const Played& request, Event event) {
  event.id = request.id;
  outbox_.Post(*request.sink, event);
}

void ScriptedLoop::Deliver() {
  Publish();
  outbox_.Deliver();
  ended_.clear();
  refused_.clear();
}

}  // namespace plumbline
