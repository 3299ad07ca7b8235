#pragma once

#include <cstdint>
#include <vector>

#include "engine/clock/clock.h"

namespace plumbline {

// A chunk of a prompt.
struct PrefillShape {
  std::int64_t tokens = 0;
  std::int64_t past = 0;  // tokens of the same request before it
  bool sample = true;     // the prompt ends here: a token comes out
};

// One step of an engine by what its cost depends on. At least one prefill or decode.
struct StepShape {
  std::vector<PrefillShape> prefills{};
  std::vector<std::int64_t> decode_contexts{};  // tokens of each decoding request before its new one
};

// Runs steps of a given shape, for measuring what they cost: the whole step, all layers, as a batch of that
// shape would run. The tokens are made up, and so is what lies in the KV cache; no request is involved.
class StepProbe {
 public:
  virtual ~StepProbe() = default;

  // Runs one step and returns how long it took. Blocks until it is done; called by one thread at a time, from
  // any. Afterwards everything is as before, cached prefixes included. Throws Error(kBadInput) naming the
  // limit that the shape exceeds (tokens or requests a step, positions of a request, KV blocks), and
  // Error(kInvalid) while the engine has requests to serve.
  virtual TimeNs RunStep(const StepShape& shape) = 0;
};

}  // namespace plumbline
