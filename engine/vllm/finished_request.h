#pragma once

#include <string>
#include <vector>

#include "engine/api/event.h"
#include "engine/api/facts.h"
#include "engine/vllm/frame.h"

namespace plumbline {

// The worker's `finished` message: everything vLLM told of one request.
class FinishedRequest {
 public:
  // Borrows the frame. Throws Error(kEngineFailed) for one of another form.
  explicit FinishedRequest(const Frame& frame);

  RequestId id() const { return id_; }
  TimeNs received_ns() const { return received_ns_; }  // when the worker had read its submission

  // In order of time, kFinished last; what vLLM could not tell is left out. The end has the time `now_ns`
  // where no token came. They point into this object and into the frame.
  std::vector<Event> Events(TimeNs now_ns) const;

 private:
  void AddTokens(std::vector<Event>& events) const;
  Event Make(EventKind kind, TimeNs time_ns, std::size_t count = 0) const;

  RequestId id_ = 0;
  TimeNs received_ns_ = 0;
  std::optional<TimeNs> queued_ns_;
  std::optional<TimeNs> scheduled_ns_;
  std::optional<TimeNs> first_token_ns_;
  std::optional<TimeNs> last_token_ns_;
  std::int64_t cached_toks_ = 0;
  std::int64_t preemptions_ = 0;
  FinishReason reason_ = FinishReason::kError;
  std::string error_;
  std::vector<TokenId> token_ids_;
  std::vector<TimeNs> token_times_;  // empty, or one a token
};

// The worker's `stats` message.
Counters ReadCounters(const Json& message);

// Why vLLM must not get this request: it checks neither (an id outside the vocabulary kills it, one that is
// too long ends early and in silence). Empty when it may.
std::string WhyRefused(const Request& request, const Facts& facts);

}  // namespace plumbline
