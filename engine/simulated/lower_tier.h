#pragma once

#include <cstdint>
#include <utility>

#include "engine/core/block_pool.h"
#include "engine/core/kv_lower_tier.h"

namespace plumbline {

// CPU or CXL memory as a lower tier, in chunks of several blocks. Every chunk whose blocks are findable on
// the device is copied down at no cost; the oldest copies make room. Bringing chunks back costs their bytes.
// No stored output of the reference shows such a recall: the rules are those its source states.
class LowerTier final : public KvLowerTier {
 public:
  // `bytes_per_block`: of one KV block on all devices of an instance together.
  LowerTier(std::int64_t block_size, std::int64_t bytes_per_block, double capacity_bytes);

  std::int64_t block_size() const { return block_size_; }
  std::int64_t bytes_per_chunk() const { return bytes_per_chunk_; }

  // Whole chunks from the one that `cached` ends in; 0 unless they gain at least one chunk's tokens.
  std::int64_t Find(const Sequence& sequence, std::int64_t cached) const override;
  void Recall(const Sequence& sequence, std::int64_t cached) override;
  void Keep(const Sequence& sequence, std::int64_t first, std::int64_t last) override;

  // Bytes recalled since the last call.
  std::int64_t TakeRecalledBytes() { return std::exchange(recalled_bytes_, 0); }

 private:
  std::int64_t ChunksAfter(const Sequence& sequence, std::int64_t cached) const;
  const BlockHash& KeyOf(const Sequence& sequence, std::int64_t chunk) const;

  std::int64_t block_size_;
  std::int64_t blocks_per_chunk_;
  std::int64_t chunk_tokens_;
  std::int64_t bytes_per_chunk_;
  BlockPool pool_;
  std::int64_t recalled_bytes_ = 0;
};

}  // namespace plumbline
