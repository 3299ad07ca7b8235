#include "engine/vllm/finished_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/error.h"

namespace plumbline {
namespace {

// vLLM tells times as seconds of CLOCK_MONOTONIC; a double holds nanoseconds for 100 days of uptime.
std::optional<TimeNs> TimeOf(const JsonView& json, const char* key) {
  const std::optional<double> seconds = json.MaybeDouble(key);
  // vLLM's own "never happened" is 0.
  if (!seconds || *seconds <= 0 || *seconds > 1e9) return std::nullopt;
  return static_cast<TimeNs>(std::llround(*seconds * 1e9));
}

FinishReason ReasonOf(const std::string& word) {
  if (word == "length") return FinishReason::kLength;
  if (word == "stop") return FinishReason::kStop;
  if (word == "abort") return FinishReason::kCancelled;
  return FinishReason::kError;
}

}  // namespace

FinishedRequest::FinishedRequest(const Frame& frame) {
  try {
    const JsonView json(frame.message, "vLLM worker");
    id_ = json.Int("id");
    received_ns_ = TimeOf(json, "received").value_or(0);
    queued_ns_ = TimeOf(json, "queued");
    scheduled_ns_ = TimeOf(json, "scheduled");
    first_token_ns_ = TimeOf(json, "first_token");
    last_token_ns_ = TimeOf(json, "last_token");
    cached_toks_ = std::clamp<std::int64_t>(json.MaybeInt("cached_toks").value_or(0), 0, INT32_MAX);
    preemptions_ = std::clamp<std::int64_t>(json.MaybeInt("preemptions").value_or(0), 0, 1'000'000);
    const std::string reason = json.String("reason");
    reason_ = ReasonOf(reason);
    error_ = json.MaybeString("error").value_or(
        reason_ == FinishReason::kError ? "vLLM finished it with reason " + reason : "");
    const std::int64_t stamps = json.Int("num_stamps");
    const std::size_t stamp_bytes = stamps < 0 ? frame.blob.size() + 1 : static_cast<std::size_t>(stamps) * 8;
    if (stamp_bytes > frame.blob.size() || (frame.blob.size() - stamp_bytes) % sizeof(TokenId) != 0) {
      json.Fail("tokens and times do not fill the message");
    }
    token_ids_.resize((frame.blob.size() - stamp_bytes) / sizeof(TokenId));
    // An empty vector has no address to copy to.
    if (!token_ids_.empty()) {
      std::memcpy(token_ids_.data(), frame.blob.data(), token_ids_.size() * sizeof(TokenId));
    }
    if (stamps != 0 && static_cast<std::size_t>(stamps) != token_ids_.size())
      json.Fail("not one time a token");
    for (std::size_t i = 0; i < static_cast<std::size_t>(stamps); ++i) {
      double seconds = 0;
      std::memcpy(&seconds, frame.blob.data() + token_ids_.size() * sizeof(TokenId) + i * 8, 8);
      if (!(seconds > 0 && seconds < 1e9)) json.Fail("a token's time is none");
      token_times_.push_back(static_cast<TimeNs>(std::llround(seconds * 1e9)));
    }
  } catch (const Error& error) {
    throw Error(ExitCode::kEngineFailed, error.what());
  }
}

Event FinishedRequest::Make(EventKind kind, TimeNs time_ns, std::size_t count) const {
  Event event;
  event.id = id_;
  event.kind = kind;
  event.time_ns = time_ns;
  event.count = static_cast<std::uint32_t>(count);
  return event;
}

std::vector<Event> FinishedRequest::Events(TimeNs now_ns) const {
  std::vector<Event> events;
  if (queued_ns_) events.push_back(Make(EventKind::kQueued, *queued_ns_));
  if (scheduled_ns_) {
    events.push_back(Make(EventKind::kScheduled, *scheduled_ns_, static_cast<std::size_t>(cached_toks_)));
  }
  AddTokens(events);
  const TimeNs end_ns = events.empty() ? now_ns : events.back().time_ns;
  // How often is known, when is not: the time says no more than that it was before the end.
  for (std::int64_t i = 0; i < preemptions_; ++i) events.push_back(Make(EventKind::kPreempted, end_ns));
  Event end = Make(EventKind::kFinished, end_ns);
  end.reason = reason_;
  end.text = error_;
  events.push_back(end);
  return events;
}

void FinishedRequest::AddTokens(std::vector<Event>& events) const {
  const auto add = [&](TimeNs time_ns, std::size_t begin, std::size_t end) {
    if (begin == end) return;
    events.push_back(Make(EventKind::kTokens, time_ns, end - begin));
    events.back().token_ids = token_ids_.data() + begin;
  };
  if (!token_times_.empty()) {
    for (std::size_t begin = 0, end = 0; begin < token_ids_.size(); begin = end) {
      while (end < token_ids_.size() && token_times_[end] == token_times_[begin]) ++end;
      add(token_times_[begin], begin, end);
    }
  } else if (!token_ids_.empty() && first_token_ns_ && last_token_ns_) {
    add(*first_token_ns_, 0, 1);
    add(*last_token_ns_, 1, token_ids_.size());
  }
}

Counters ReadCounters(const Json& message) {
  try {
    const JsonView json(message, "vLLM worker");
    Counters counters;
    counters.prompt_tokens = json.Int("prompt");
    counters.prompt_tokens_computed = json.Int("computed");
    counters.prompt_tokens_cached = json.Int("cached");
    counters.generation_tokens = json.Int("generation");
    counters.preemptions = json.Int("preemptions");
    counters.running = json.MaybeInt("running");
    counters.waiting = json.MaybeInt("waiting");
    counters.kv_cache_usage = json.MaybeDouble("kv_cache_usage");
    return counters;
  } catch (const Error& error) {
    throw Error(ExitCode::kEngineFailed, error.what());
  }
}

std::string WhyRefused(const Request& request, const Facts& facts) {
  if (request.prompt_token_ids.empty()) return "the prompt has no token ids";
  if (facts.vocab_size) {
    for (const TokenId id : request.prompt_token_ids) {
      if (id < 0 || id >= *facts.vocab_size) {
        return fmt::format("token id {} lies outside the vocabulary of {}", id, *facts.vocab_size);
      }
    }
  }
  const auto prompt = static_cast<std::int64_t>(request.prompt_token_ids.size());
  if (facts.max_model_len && prompt + request.output_toks > *facts.max_model_len) {
    return fmt::format("{} prompt and {} output tokens exceed max_model_len {}", prompt, request.output_toks,
                       *facts.max_model_len);
  }
  return "";
}

}  // namespace plumbline
