#pragma once

#include <memory>
#include <string>

#include "engine/api/event.h"
#include "engine/core/engine_loop.h"
#include "engine/core/request_limits.h"
#include "engine/core/scheduler_config.h"
#include "engine/core/sequence.h"

namespace plumbline {

// A request on its way through an engine: the scheduler's view of it, and who is told.
struct ServedRequest final : LoopRequest, Sequence {
  EventSink* sink = nullptr;
  std::string refusal;     // why it cannot be served; empty = it can
  bool announced = false;  // its kScheduled event is out
};

// Checks the request and sets `refusal`, with the numbers. Reserves what the request can ever need, so that
// serving it allocates nothing.
std::unique_ptr<ServedRequest> MakeServedRequest(Request request, EventSink& sink,
                                                 const RequestLimits& limits, const SchedulerConfig& config,
                                                 const SchedulingPolicy& policy);

}  // namespace plumbline
