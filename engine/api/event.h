#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/api/request.h"

namespace plumbline {

enum class FinishReason : std::uint8_t {
  kNone,
  kLength,     // the asked-for number of tokens came out: the only good end of a replay
  kStop,       // the engine stopped early
  kCancelled,  // Cancel, or shutdown with the request in flight
  kRefused,    // not accepted at submit (a prompt that can never fit, an id outside the vocabulary)
  kError,      // failed after it was accepted
};

// "length", "stop", "abort", "refused", "error": the words of requests.jsonl.
const char* Name(FinishReason reason);

enum class EventKind : std::uint8_t {
  kQueued,     // accepted by the engine's loop
  kScheduled,  // first picked by the scheduler; `count` = prompt tokens served by the prefix cache
  kTokens,     // `count` output tokens became available together
  kPreempted,  // thrown back to the queue, its KV blocks freed
  kDeparted,   // left this machine (kernel transmit stamp; endpoints only)
  kFinished,   // the last event of a request: `reason`, and `text` where it failed
};

// What happened to one request at one moment. Pointers are valid during the call only.
struct Event {
  RequestId id = 0;
  TimeNs time_ns = 0;  // stamped once, where it happened, on the engine's clock
  EventKind kind = EventKind::kTokens;
  FinishReason reason = FinishReason::kNone;
  std::uint32_t count = 0;
  const TokenId* token_ids = nullptr;  // kTokens: `count` ids, or null when the engine cannot tell them
  std::string_view text{};             // kFinished: what went wrong
};

// Receives the events of the requests that were submitted with it.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Called by one engine thread at a time, once a step with all events of that step in order of time. It is
  // on the measured path: it must not block, format or call the engine. A request's events are queued,
  // scheduled, tokens and preempted in any number, finished; nothing follows kFinished. An engine that cannot
  // tell an event leaves it out.
  virtual void OnEvents(std::span<const Event> events) = 0;
};

}  // namespace plumbline
