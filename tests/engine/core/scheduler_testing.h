#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "engine/core/scheduler.h"

namespace plumbline {

inline std::vector<TokenId> Ids(std::int64_t count, TokenId first = 0) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

// A request whose ids start at `first_id`; no ids when that is negative.
inline Sequence MakeSequence(RequestId id, std::int64_t input_toks, std::int64_t output_toks,
                             TokenId first_id = -1, TimeNs arrival_ns = 0) {
  Sequence sequence;
  sequence.id = id;
  sequence.input_toks = input_toks;
  sequence.output_toks = output_toks;
  sequence.arrival_ns = arrival_ns;
  if (first_id >= 0) sequence.token_ids = Ids(input_toks, first_id);
  return sequence;
}

// Writes down what happens as words: "scheduled 1", "token 1", ...
class RecordingObserver final : public SchedulerObserver {
 public:
  void OnScheduled(const Sequence& s, TimeNs) override { Note("scheduled", s); }
  void OnPreempted(const Sequence& s, TimeNs) override { Note("preempted", s); }
  void OnPrefillDone(const Sequence& s, TimeNs) override { Note("prefilled", s); }
  void OnToken(const Sequence& s, TimeNs, const TokenId*) override { Note("token", s); }
  void OnFinished(Sequence& s, TimeNs) override { Note("finished", s); }

  std::vector<std::string> Take() { return std::exchange(notes_, {}); }

 private:
  void Note(const std::string& what, const Sequence& s) {
    notes_.push_back(what + " " + std::to_string(s.id));
  }

  std::vector<std::string> notes_;
};

// (request, tokens) of each entry.
inline std::vector<std::pair<RequestId, std::int64_t>> Content(const Batch& batch) {
  std::vector<std::pair<RequestId, std::int64_t>> content;
  for (const BatchEntry& entry : batch.entries) content.emplace_back(entry.request_id, entry.num_tokens);
  return content;
}

}  // namespace plumbline
