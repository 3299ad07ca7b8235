#include "engine/simulated/lower_tier.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"

namespace plumbline {

LowerTier::LowerTier(std::string name, std::int64_t block_size)
    : name_(std::move(name)),
      chunk_tokens_(std::max(block_size, 256 / block_size * block_size)),
      blocks_per_chunk_(chunk_tokens_ / block_size) {}

std::size_t LowerTier::ChunkKey(const Sequence& sequence, std::int64_t chunk) const {
  return sequence.hash_chain[static_cast<std::size_t>((chunk + 1) * blocks_per_chunk_ - 1)].low;
}

void LowerTier::Keep(const Sequence& sequence) {
  const std::int64_t known = static_cast<std::int64_t>(sequence.hash_chain.size()) / blocks_per_chunk_;
  const std::int64_t computed = std::min(sequence.computed / chunk_tokens_, known);
  // From the last one back to one that is there already; all before that one are there, too.
  for (std::int64_t chunk = computed - 1; chunk >= 0; --chunk) {
    if (!chunks_.insert(ChunkKey(sequence, chunk)).second) return;
  }
}

void LowerTier::RequireNoRecall(const Sequence& sequence) const {
  const std::int64_t chunk = sequence.cached / chunk_tokens_;
  const std::int64_t known = static_cast<std::int64_t>(sequence.hash_chain.size()) / blocks_per_chunk_;
  if (chunk >= known || (chunk + 1) * chunk_tokens_ > sequence.reached - 1) return;
  if (!chunks_.contains(ChunkKey(sequence, chunk))) return;
  ThrowBadInput({.field = "--prefix-storage",
                 .value = name_,
                 .problem = "would serve a part of request " + std::to_string(sequence.id) +
                            " from there; what such a recall costs is not simulated, for no stored output of "
                            "the reference shows it"});
}

}  // namespace plumbline
