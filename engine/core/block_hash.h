#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/api/request.h"

namespace plumbline {

// Identity of the content of a KV block: of its own tokens and of all tokens before it. 128 bits, because two
// prompts that collided would read each other's cache.
struct BlockHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const BlockHash&, const BlockHash&) = default;
};

// The hash of the block that follows `parent` ({} for the first block of a sequence).
BlockHash HashBlock(const BlockHash& parent, std::span<const TokenId> block);

// Appends the hashes of all full blocks of `token_ids` that `chain` does not cover yet.
void ExtendHashChain(std::span<const TokenId> token_ids, std::int64_t block_size,
                     std::vector<BlockHash>& chain);

}  // namespace plumbline
