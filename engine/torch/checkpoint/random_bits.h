#pragma once

#include <cstdint>

namespace plumbline {

// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every input bit changes half of the
// output's. Pure integer arithmetic, the same on every machine.
constexpr std::uint64_t MixBits(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// Value number `index` of the stream that `seed` names. Any one can be had without those before it.
constexpr std::uint64_t RandomBits(std::uint64_t seed, std::uint64_t index) {
  return MixBits(seed + index * 0x9e3779b97f4a7c15u);
}

}  // namespace plumbline
