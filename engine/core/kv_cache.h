#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/block_pool.h"
#include "engine/core/kv_lower_tier.h"
#include "engine/core/sequence.h"

namespace plumbline {

// Gives sequences their KV blocks and finds blocks that hold a prompt's beginning already.
class KvCache {
 public:
  KvCache(std::int64_t num_blocks, std::int64_t block_size, bool enable_prefix_caching);

  // The cached blocks that `sequence` begins with, leaving it at least one token to compute. Valid until the
  // next call or change. Changes nothing.
  std::span<const BlockId> FindPrefix(const Sequence& sequence);

  // Makes room for `tokens` more tokens after the `hits` (from FindPrefix; only a sequence that holds no
  // blocks has any). False, and nothing changed, when the free blocks do not suffice. The blocks that the new
  // tokens fill are findable from now on, before they are computed.
  bool Allocate(Sequence& sequence, std::int64_t tokens, std::span<const BlockId> hits = {});

  // What Allocate would need at once for the sequence's first `total` tokens: new blocks, and hits that
  // nobody holds. The comparison with num_free is the reserve-full-input rule.
  std::int64_t BlocksRequired(const Sequence& sequence, std::int64_t total,
                              std::span<const BlockId> hits) const;

  // Makes the full blocks of the first `tokens` tokens findable.
  void IndexBlocks(Sequence& sequence, std::int64_t tokens);

  // From now on what becomes findable is told to `tier`, which must stay.
  void UseLowerTier(KvLowerTier& tier) { lower_tier_ = &tier; }
  KvLowerTier* lower_tier() const { return lower_tier_; }

  // Takes the blocks away; they stay findable until they are used for something else.
  void Free(Sequence& sequence);

  const BlockPool& pool() const { return pool_; }
  std::int64_t block_size() const { return block_size_; }
  bool enable_prefix_caching() const { return enable_prefix_caching_; }
  // False while a sequence holds a block.
  bool ResetPrefixCache() { return pool_.ForgetContents(); }

 private:
  std::int64_t BlocksFor(std::int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }

  BlockPool pool_;
  std::int64_t block_size_;
  bool enable_prefix_caching_;
  std::vector<BlockId> hits_;
  KvLowerTier* lower_tier_ = nullptr;
};

}  // namespace plumbline
