#pragma once

#include <vector>

#include "engine/api/event.h"

namespace plumbline {

// Collects the events of a step by sink, so that each sink is called once. What the events point to must live
// until Deliver.
class EventOutbox {
 public:
  void Post(EventSink& sink, const Event& event);
  void Deliver();

 private:
  struct Letter {
    EventSink* sink = nullptr;
    std::vector<Event> events;
  };
  std::vector<Letter> letters_;
};

}  // namespace plumbline
