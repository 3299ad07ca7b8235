#include "engine/core/block_pool.h"

#include <algorithm>
#include <bit>
#include <ranges>
#include <stdexcept>

namespace plumbline {

BlockPool::BlockPool(std::int64_t num_blocks) : blocks_(static_cast<std::size_t>(num_blocks)) {
  slots_.assign(std::bit_ceil(2 * blocks_.size() + 1), kNoBlock);
  slot_mask_ = slots_.size() - 1;
  for (BlockId block = 0; block < num_blocks; ++block) Append(block);
}

BlockId BlockPool::Take() {
  if (head_ == kNoBlock) throw std::logic_error("a KV block was taken from an empty pool");
  const BlockId block = head_;
  Unlink(block);
  Block& taken = At(block);
  if (taken.indexed) {
    EraseSlot(SlotOf(taken.hash));
    --num_free_indexed_;
  }
  taken.indexed = false;
  taken.has_hash = false;
  taken.holders = 1;
  return block;
}

void BlockPool::Touch(BlockId block) {
  Block& touched = At(block);
  if (touched.holders == 0) {
    Unlink(block);
    if (touched.indexed) --num_free_indexed_;
  }
  ++touched.holders;
}

void BlockPool::Free(std::span<const BlockId> blocks) {
  for (const BlockId block : std::views::reverse(blocks)) {
    Block& freed = At(block);
    if (freed.holders <= 0) throw std::logic_error("a free KV block was freed");
    if (--freed.holders > 0) continue;
    Append(block);
    if (freed.indexed) ++num_free_indexed_;
  }
}

void BlockPool::SetHash(BlockId block, const BlockHash& hash) {
  Block& content = At(block);
  if (content.has_hash) return;
  content.hash = hash;
  content.has_hash = true;
  content.indexed = true;
  BlockId& slot = slots_[SlotOf(hash)];
  if (slot != kNoBlock) {
    Block& older = At(slot);
    older.indexed = false;
    if (older.holders == 0) --num_free_indexed_;
  }
  slot = block;
}

BlockId BlockPool::Find(const BlockHash& hash) const {
  return slots_[SlotOf(hash)];
}

bool BlockPool::ForgetContents() {
  if (num_held() > 0) return false;
  std::fill(slots_.begin(), slots_.end(), kNoBlock);
  for (Block& block : blocks_) block.has_hash = block.indexed = false;
  num_free_indexed_ = 0;
  return true;
}

void BlockPool::Append(BlockId block) {
  Block& appended = At(block);
  appended.previous = tail_;
  appended.next = kNoBlock;
  (tail_ == kNoBlock ? head_ : At(tail_).next) = block;
  tail_ = block;
  ++num_free_;
}

void BlockPool::Unlink(BlockId block) {
  Block& unlinked = At(block);
  (unlinked.previous == kNoBlock ? head_ : At(unlinked.previous).next) = unlinked.next;
  (unlinked.next == kNoBlock ? tail_ : At(unlinked.next).previous) = unlinked.previous;
  --num_free_;
}

std::size_t BlockPool::SlotOf(const BlockHash& hash) const {
  std::size_t slot = HomeSlot(hash);
  while (slots_[slot] != kNoBlock && !(At(slots_[slot]).hash == hash)) slot = (slot + 1) & slot_mask_;
  return slot;
}

// Closes the gap by moving up every entry that a search would no longer reach across it; no tombstones, so
// searches stay short however many blocks come and go.
void BlockPool::EraseSlot(std::size_t slot) {
  std::size_t gap = slot;
  for (std::size_t next = (slot + 1) & slot_mask_; slots_[next] != kNoBlock; next = (next + 1) & slot_mask_) {
    const std::size_t home = HomeSlot(At(slots_[next]).hash);
    if (((next - home) & slot_mask_) < ((next - gap) & slot_mask_)) continue;
    slots_[gap] = slots_[next];
    gap = next;
  }
  slots_[gap] = kNoBlock;
}

}  // namespace plumbline
