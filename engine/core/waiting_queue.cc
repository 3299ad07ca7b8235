#include "engine/core/waiting_queue.h"

#include <tuple>

namespace plumbline {

// From the back: requests come nearly always in order.
void WaitingQueue::InsertByArrival(Sequence& sequence) {
  const auto key = [](const Sequence& s) { return std::tuple(s.arrival_ns, s.id); };
  Sequence* previous = back_;
  while (previous != nullptr && key(sequence) < key(*previous)) previous = previous->waiting_previous;
  InsertAfter(previous, sequence);
}

void WaitingQueue::PushFront(Sequence& sequence) {
  InsertAfter(nullptr, sequence);
}

void WaitingQueue::Remove(Sequence& sequence) {
  Sequence* const previous = sequence.waiting_previous;
  Sequence* const next = sequence.waiting_next;
  (previous == nullptr ? front_ : previous->waiting_next) = next;
  (next == nullptr ? back_ : next->waiting_previous) = previous;
  sequence.waiting_previous = sequence.waiting_next = nullptr;
  --size_;
}

void WaitingQueue::InsertAfter(Sequence* previous, Sequence& sequence) {
  Sequence* const next = previous == nullptr ? front_ : previous->waiting_next;
  sequence.waiting_previous = previous;
  sequence.waiting_next = next;
  (previous == nullptr ? front_ : previous->waiting_next) = &sequence;
  (next == nullptr ? back_ : next->waiting_previous) = &sequence;
  ++size_;
}

}  // namespace plumbline
