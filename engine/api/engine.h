#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/api/engine_spec.h"
#include "engine/api/event.h"
#include "engine/api/facts.h"
#include "engine/api/request.h"
#include "engine/api/step_probe.h"

namespace plumbline {

// Moves an engine that lives in virtual time. One thread, the same that calls Submit. What is submitted
// before AdvanceTo(t) with a due time up to t is seen by whatever happens at t, so callers submit first and
// advance then; a request may also be submitted ahead of its due time.
class VirtualTime {
 public:
  virtual ~VirtualTime() = default;
  // When something happens next by itself, not before the last Advance; nothing when the engine is idle for
  // good.
  virtual std::optional<TimeNs> NextEventTime() const = 0;
  // Does everything that happens up to and including `now`, events delivered in order of time.
  virtual void AdvanceTo(TimeNs now) = 0;
};

// A booted serving engine: the system under test.
//
// Threads: Submit, Cancel, Sample, TakeSteps and ResetPrefixCache may be called from any thread but not
// concurrently with each other unless said; events come from a thread of the engine's own (in virtual time:
// from AdvanceTo). Errors: a request that cannot be served ends with a kFinished event, never an exception.
// An engine that died finishes all requests in flight with kError and throws Error(kEngineFailed) with its
// last words from every call but facts, TakeSteps and Shutdown; so does, after Shutdown, one that did not.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const Facts& facts() const = 0;

  // Hands over requests as one unit: they become visible to the scheduler together (a burst submitted one by
  // one would be split over the first steps). Returns at once; does not wait for the engine. The sink must
  // outlive the requests.
  virtual void Submit(std::vector<Request> requests, EventSink& sink) = 0;

  // Asks for the end of a request; its kFinished event follows unless it is already under way. Unknown ids
  // are ignored. Callable concurrently with everything.
  virtual void Cancel(RequestId id) = 0;

  // Totals and state of the last step. Callable concurrently with everything; never waits for a step.
  virtual Counters Sample() const = 0;

  // Forgets all cached prefixes. False when blocks are still in use; nothing is forgotten then.
  virtual bool ResetPrefixCache() = 0;

  // Steps since the last call, oldest first; empty for engines that have no scheduler of their own.
  virtual std::vector<StepRecord> TakeSteps() { return {}; }

  // A JSON object as text: what is known only when everything was served. Empty where there is nothing of the
  // kind. Callable after Shutdown.
  virtual std::string EndFactsJson() const { return ""; }

  // Ends with everything in flight finished as kCancelled. Idempotent; the destructor calls it.
  virtual void Shutdown() = 0;

  // Not null when this engine's clock is virtual.
  virtual VirtualTime* virtual_time() { return nullptr; }

  // Not null when this engine can run single steps for measuring. Lives as long as the engine.
  virtual StepProbe* step_probe() { return nullptr; }
};

}  // namespace plumbline
