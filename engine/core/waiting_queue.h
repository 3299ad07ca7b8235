#pragma once

#include <cstdint>

#include "engine/core/sequence.h"

namespace plumbline {

// Requests that wait for admission: by (arrival, id), preempted ones in front of all. Linked through the
// sequences, so that nothing is allocated while serving.
class WaitingQueue {
 public:
  bool empty() const { return front_ == nullptr; }
  std::int64_t size() const { return size_; }
  Sequence* front() const { return front_; }

  // Behind the last one that does not come later.
  void InsertByArrival(Sequence& sequence);
  void PushFront(Sequence& sequence);
  void Remove(Sequence& sequence);

 private:
  void InsertAfter(Sequence* previous, Sequence& sequence);

  Sequence* front_ = nullptr;
  Sequence* back_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace plumbline
