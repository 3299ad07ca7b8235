#include "engine/core/event_outbox.h"

#include <algorithm>
#include <iterator>

namespace plumbline {

void EventOutbox::Post(EventSink& sink, const Event& event) {
  auto letter = std::find_if(letters_.begin(), letters_.end(),
                             [&](const Letter& candidate) { return candidate.sink == &sink; });
  if (letter == letters_.end()) {
    letters_.push_back({.sink = &sink, .events = {}});
    letter = std::prev(letters_.end());
  }
  letter->events.push_back(event);
}

void EventOutbox::Deliver() {
  for (Letter& letter : letters_) {
    if (letter.events.empty()) continue;
    letter.sink->OnEvents(letter.events);
    letter.events.clear();
  }
  // Sinks come and go with their callers; the search in Post must not get longer with each.
  constexpr std::size_t kSinksKept = 8;
  if (letters_.size() > kSinksKept) letters_.clear();
}

}  // namespace plumbline
