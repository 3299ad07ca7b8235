#pragma once

#include <span>

#include "engine/api/step_probe.h"
#include "engine/clock/clock.h"
#include "engine/core/batch.h"

namespace plumbline {

// Computes the steps that the scheduler decides on. One batch at a time, always from the same thread (not
// the one that made it). What it needs to know about a request stands in the batch; it keeps nothing by
// request.
class Executor {
 public:
  virtual ~Executor() = default;

  // Computes the batch. `sampled` has one place an entry; those of entries with `samples` must be filled with
  // ids below the vocabulary, the others are ignored. In real time it blocks until the ids are there, and
  // what it returns is not read. In virtual time it returns at once with the step's length in ns, at least 0.
  //
  // An exception ends the engine: all requests finish with kError and its text, and the engine throws
  // Error(kEngineFailed) from then on.
  virtual TimeNs Execute(const Batch& batch, std::span<TokenId> sampled) = 0;

  // False for an executor that models time only: `sampled` is then empty, and events carry counts without
  // ids.
  virtual bool TellsTokenIds() const { return true; }

  // Not null when this executor can run steps of a given shape. Called from the thread that calls Execute,
  // between two batches; what Execute computes afterwards is the same as without.
  virtual StepProbe* step_probe() { return nullptr; }
};

}  // namespace plumbline
