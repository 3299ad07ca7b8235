#include "engine/core/block_hash.h"

namespace plumbline {
namespace {

// The two halves of the full product: each bit of the result depends on each bit of both factors.
std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Odd constants with half of their bits set, one pair a lane.
constexpr std::uint64_t kLowKey = 0x9e3779b97f4a7c15;
constexpr std::uint64_t kHighKey = 0xd1b54a32d192ed03;
constexpr std::uint64_t kLowSalt = 0xa0e1c3b5978fd26b;
constexpr std::uint64_t kHighSalt = 0x7c9be6f1d3a50847;

}  // namespace

BlockHash HashBlock(const BlockHash& parent, std::span<const TokenId> block) {
  std::uint64_t low = Mix(parent.low ^ kLowSalt, kLowKey) + parent.high;
  std::uint64_t high = Mix(parent.high ^ kHighSalt, kHighKey) + parent.low;
  for (const TokenId id : block) {
    const std::uint64_t word = static_cast<std::uint32_t>(id);
    low = Mix(low ^ word ^ kLowSalt, kLowKey) + high;
    high = Mix(high ^ (word << 32) ^ kHighSalt, kHighKey) + word;
  }
  return {low, high};
}

void ExtendHashChain(std::span<const TokenId> token_ids, std::int64_t block_size,
                     std::vector<BlockHash>& chain) {
  const std::size_t size = static_cast<std::size_t>(block_size);
  while ((chain.size() + 1) * size <= token_ids.size()) {
    const BlockHash parent = chain.empty() ? BlockHash{} : chain.back();
    chain.push_back(HashBlock(parent, token_ids.subspan(chain.size() * size, size)));
  }
}

}  // namespace plumbline
