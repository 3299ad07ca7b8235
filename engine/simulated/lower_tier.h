#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "engine/core/sequence.h"

namespace plumbline {

// A second place for KV blocks below the device (CPU or CXL memory): every chunk that is computed is copied
// down at no cost. Serving a prompt from there (a recall) has a cost that no stored output of the reference
// shows, so a simulation in which one would take place is refused instead of guessed.
class LowerTier {
 public:
  LowerTier(std::string name, std::int64_t block_size);

  // The sequence's chunks that are computed are in this tier from now on. Nothing is ever evicted here: at
  // the worst that refuses a simulation in which the reference would no longer have found the chunk.
  void Keep(const Sequence& sequence);

  // Called when a sequence is admitted with what the device itself could serve. Throws Error(kBadInput)
  // naming the request when this tier would serve at least one chunk more.
  void RequireNoRecall(const Sequence& sequence) const;

 private:
  std::size_t ChunkKey(const Sequence& sequence, std::int64_t chunk) const;

  std::string name_;
  std::int64_t chunk_tokens_;
  std::int64_t blocks_per_chunk_;
  std::unordered_set<std::uint64_t> chunks_;
};

}  // namespace plumbline
