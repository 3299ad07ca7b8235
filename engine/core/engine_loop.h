#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/engine.h"

namespace plumbline {

enum class TimeMode {
  kReal,     // a step lasts as long as it takes
  kVirtual,  // a step says how long it lasts
};

// A request as a loop keeps it.
struct LoopRequest {
  virtual ~LoopRequest() = default;
  TimeNs due_ns = 0;
};

// What happens inside an engine, step by step, under either clock. Holds no clock, no lock and no thread: one
// thread calls everything but Prepare. MakeEngine puts it on a thread or into virtual time.
class EngineLoop {
 public:
  virtual ~EngineLoop() = default;

  // Checks a request and reserves what it needs. Called by the submitting thread, concurrently with the rest:
  // reads nothing that changes. The sink outlives the request.
  virtual std::unique_ptr<LoopRequest> Prepare(Request request, EventSink& sink) const = 0;

  // Takes in what Prepare made. It is seen by the Step at its arrival or later.
  virtual void Submit(std::unique_ptr<LoopRequest> request, TimeNs arrival_ns) = 0;

  // The next Step that can ends the request with kCancelled. Unknown ids are ignored.
  virtual void Cancel(RequestId id) = 0;

  // Does what is due at `now`, which never goes back, and delivers the events of it. Throws when the engine
  // can no longer go on, with its requests still open.
  virtual void Step(TimeNs now) = 0;

  // When Step has something to do next; nothing while the loop is idle for good.
  virtual std::optional<TimeNs> NextEventTime() const = 0;

  // Ends everything that is open with `reason`, delivered at once.
  virtual void FinishAll(TimeNs now, FinishReason reason, const std::string& text) = 0;

  // False while blocks are in use.
  virtual bool ResetPrefixCache() = 0;
  virtual Counters CurrentCounters() const = 0;
  // Moves the records of the steps completed since the last call to the end of `records`.
  virtual void TakeSteps(std::vector<StepRecord>&) {}

  // Not null when steps of a given shape can be run between two Steps.
  virtual StepProbe* step_probe() { return nullptr; }

  // `publish` runs in Step and FinishAll when counters and steps are up to date, right before the events of
  // them go out: whoever learns from an event that a request is over must not find counters without it.
  void BeforeDelivery(std::function<void()> publish) { publish_ = std::move(publish); }

 protected:
  void Publish() const {
    if (publish_) publish_();
  }

 private:
  std::function<void()> publish_;
};

// The engine around a loop: on a thread of its own and the monotonic clock, or in virtual time. Engine's
// threading rules; ResetPrefixCache and RunStep wait for the end of the step under way. In virtual time a
// request arrives when it is due, or at the time last advanced to if that is later; in real time when it is
// submitted.
std::unique_ptr<Engine> MakeEngine(Facts facts, std::unique_ptr<EngineLoop> loop, TimeMode mode);

}  // namespace plumbline
