#pragma once

#include <cstdint>

#include "engine/core/sequence.h"

namespace plumbline {

// A second place for KV blocks, below the device, that outlives them there: what the device no longer holds
// of a sequence's beginning may be brought back from it. One thread.
class KvLowerTier {
 public:
  virtual ~KvLowerTier() = default;

  // How many tokens it has after the `cached` ones that the device itself could serve.
  virtual std::int64_t Find(const Sequence& sequence, std::int64_t cached) const = 0;

  // The sequence is admitted with what Find said; called before the device's blocks change.
  virtual void Recall(const Sequence& sequence, std::int64_t cached) = 0;

  // The sequence's blocks [first, last) became findable on the device.
  virtual void Keep(const Sequence& sequence, std::int64_t first, std::int64_t last) = 0;
};

}  // namespace plumbline
