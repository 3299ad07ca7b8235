#include "engine/simulated/lower_tier.h"

#include <algorithm>

namespace plumbline {
namespace {

constexpr std::int64_t kChunkTokens = 256;       // or one block, when blocks are larger
constexpr double kMostChunks = 1024.0 * 1024.0;  // a larger memory is never full in a simulation

}  // namespace

LowerTier::LowerTier(std::int64_t block_size, std::int64_t bytes_per_block, double capacity_bytes)
    : block_size_(block_size),
      blocks_per_chunk_(std::max<std::int64_t>(1, kChunkTokens / block_size)),
      chunk_tokens_(block_size * blocks_per_chunk_),
      bytes_per_chunk_(bytes_per_block * blocks_per_chunk_),
      pool_(static_cast<std::int64_t>(
          std::clamp(capacity_bytes / static_cast<double>(bytes_per_chunk_), 0.0, kMostChunks))) {}

const BlockHash& LowerTier::KeyOf(const Sequence& sequence, std::int64_t chunk) const {
  return sequence.hash_chain[static_cast<std::size_t>((chunk + 1) * blocks_per_chunk_ - 1)];
}

std::int64_t LowerTier::ChunksAfter(const Sequence& sequence, std::int64_t cached) const {
  const std::int64_t hashed = static_cast<std::int64_t>(sequence.hash_chain.size()) / blocks_per_chunk_;
  const std::int64_t last = std::min(sequence.reached / chunk_tokens_, hashed);
  const std::int64_t first = cached / chunk_tokens_;
  std::int64_t chunk = first;
  while (chunk < last && pool_.Find(KeyOf(sequence, chunk)) != BlockPool::kNoBlock) ++chunk;
  return chunk - first;
}

std::int64_t LowerTier::Find(const Sequence& sequence, std::int64_t cached) const {
  const std::int64_t end = (cached / chunk_tokens_ + ChunksAfter(sequence, cached)) * chunk_tokens_;
  return end - cached >= chunk_tokens_ ? end - cached : 0;
}

void LowerTier::Recall(const Sequence& sequence, std::int64_t cached) {
  recalled_bytes_ += ChunksAfter(sequence, cached) * bytes_per_chunk_;
}

void LowerTier::Keep(const Sequence& sequence, std::int64_t first, std::int64_t last) {
  if (pool_.num_blocks() == 0) return;
  for (std::int64_t chunk = first / blocks_per_chunk_; chunk < last / blocks_per_chunk_; ++chunk) {
    const BlockHash& key = KeyOf(sequence, chunk);
    if (pool_.Find(key) != BlockPool::kNoBlock) continue;
    const BlockId copy = pool_.Take();
    pool_.SetHash(copy, key);
    pool_.Free({&copy, 1});
  }
}

}  // namespace plumbline
