#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/batch.h"
#include "engine/core/block_hash.h"

namespace plumbline {

// The KV blocks of one scheduler: who holds them, in which order the free ones are given out, and which of
// them still hold known content. Free blocks keep their content until they are taken again; that is the
// prefix cache, and taking from the head of the free list is its LRU eviction.
//
// Precondition errors (taking from an empty list, freeing a free block) are bugs of the caller and throw
// std::logic_error.
class BlockPool {
 public:
  static constexpr BlockId kNoBlock = -1;

  explicit BlockPool(std::int64_t num_blocks);

  std::int64_t num_blocks() const { return static_cast<std::int64_t>(blocks_.size()); }
  std::int64_t num_free() const { return num_free_; }
  std::int64_t num_held() const { return num_blocks() - num_free_; }
  // Free blocks that a prefix hit could still find.
  std::int64_t num_free_indexed() const { return num_free_indexed_; }

  // The head of the free list, with one holder and without content.
  BlockId Take();

  // One more holder of a block that Find returned.
  void Touch(BlockId block);

  // One holder less of each, from the last to the first: the end of a sequence is evicted before its
  // beginning, which more requests share.
  void Free(std::span<const BlockId> blocks);

  // Tells what a held block contains. The newest block of a content is the one that Find returns. A block
  // that has a hash already is left alone.
  void SetHash(BlockId block, const BlockHash& hash);

  BlockId Find(const BlockHash& hash) const;

  std::int32_t holders(BlockId block) const { return At(block).holders; }
  bool HasHash(BlockId block) const { return At(block).has_hash; }

  // Forgets all contents. False, and nothing forgotten, while a block is held.
  bool ForgetContents();

 private:
  struct Block {
    BlockHash hash;
    BlockId previous = kNoBlock;  // neighbours in the free list
    BlockId next = kNoBlock;
    std::int32_t holders = 0;
    bool has_hash = false;
    bool indexed = false;  // the index maps `hash` to this very block
  };

  const Block& At(BlockId block) const { return blocks_[static_cast<std::size_t>(block)]; }
  Block& At(BlockId block) { return blocks_[static_cast<std::size_t>(block)]; }
  void Append(BlockId block);
  void Unlink(BlockId block);
  std::size_t HomeSlot(const BlockHash& hash) const { return hash.low & slot_mask_; }
  std::size_t SlotOf(const BlockHash& hash) const;  // where it lies, or the empty slot where it would
  void EraseSlot(std::size_t slot);

  std::vector<Block> blocks_;
  // Open addressing, at most half full, so that it never grows: the slots hold block ids, the hashes lie in
  // the blocks.
  std::vector<BlockId> slots_;
  std::size_t slot_mask_ = 0;
  BlockId head_ = kNoBlock;
  BlockId tail_ = kNoBlock;
  std::int64_t num_free_ = 0;
  std::int64_t num_free_indexed_ = 0;
};

}  // namespace plumbline
