#include "engine/core/kv_cache.h"

#include <algorithm>

namespace plumbline {

KvCache::KvCache(std::int64_t num_blocks, std::int64_t block_size, bool enable_prefix_caching)
    : pool_(num_blocks), block_size_(block_size), enable_prefix_caching_(enable_prefix_caching) {}

std::span<const BlockId> KvCache::FindPrefix(const Sequence& sequence) {
  hits_.clear();
  if (!enable_prefix_caching_) return hits_;
  const std::int64_t most =
      std::min((sequence.reached - 1) / block_size_, static_cast<std::int64_t>(sequence.hash_chain.size()));
  for (std::int64_t i = 0; i < most; ++i) {
    const BlockId block = pool_.Find(sequence.hash_chain[static_cast<std::size_t>(i)]);
    if (block == BlockPool::kNoBlock) break;
    hits_.push_back(block);
  }
  return hits_;
}

std::int64_t KvCache::BlocksRequired(const Sequence& sequence, std::int64_t total,
                                     std::span<const BlockId> hits) const {
  const std::int64_t held = static_cast<std::int64_t>(sequence.blocks.size() + hits.size());
  const std::int64_t revived =
      std::count_if(hits.begin(), hits.end(), [&](BlockId block) { return pool_.holders(block) == 0; });
  return std::max<std::int64_t>(0, BlocksFor(total) - held) + revived;
}

bool KvCache::Allocate(Sequence& sequence, std::int64_t tokens, std::span<const BlockId> hits) {
  const std::int64_t hit_tokens = static_cast<std::int64_t>(hits.size()) * block_size_;
  const std::int64_t total = sequence.computed + hit_tokens + tokens;
  if (BlocksRequired(sequence, total, hits) > pool_.num_free()) return false;
  for (const BlockId block : hits) {
    pool_.Touch(block);
    sequence.blocks.push_back(block);
  }
  if (!hits.empty()) sequence.hashed_blocks = static_cast<std::int64_t>(sequence.blocks.size());
  const std::size_t need = static_cast<std::size_t>(BlocksFor(total));
  while (sequence.blocks.size() < need) sequence.blocks.push_back(pool_.Take());
  IndexBlocks(sequence, std::min(total, sequence.reached));
  return true;
}

void KvCache::IndexBlocks(Sequence& sequence, std::int64_t tokens) {
  if (!enable_prefix_caching_) return;
  const std::int64_t full =
      std::min(tokens / block_size_, static_cast<std::int64_t>(sequence.hash_chain.size()));
  const std::int64_t first = sequence.hashed_blocks;
  for (; sequence.hashed_blocks < full; ++sequence.hashed_blocks) {
    const std::size_t i = static_cast<std::size_t>(sequence.hashed_blocks);
    pool_.SetHash(sequence.blocks[i], sequence.hash_chain[i]);
  }
  if (lower_tier_ != nullptr && first < full) lower_tier_->Keep(sequence, first, full);
}

void KvCache::Free(Sequence& sequence) {
  pool_.Free(sequence.blocks);
  sequence.blocks.clear();
  sequence.hashed_blocks = 0;
}

}  // namespace plumbline
