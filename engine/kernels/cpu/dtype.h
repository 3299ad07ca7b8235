#pragma once

#include <bit>
#include <cstdint>

namespace plumbline::cpu {

// How weights and the KV cache are stored. Activations are float32 in either case.
enum class Dtype : std::uint8_t { kFloat32, kBFloat16 };

constexpr std::int64_t SizeOf(Dtype dtype) {
  return dtype == Dtype::kFloat32 ? 4 : 2;
}

// A bfloat16 is the upper half of a float32, held as its bits.
using BFloat16 = std::uint16_t;

// Always inlined: a copy compiled with wider instructions must never serve a narrower caller.
[[gnu::always_inline]] inline float Widen(BFloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value} << 16);
}

// To nearest, ties to even; a NaN stays one (quiet).
[[gnu::always_inline]] inline BFloat16 Narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<BFloat16>((bits >> 16) | 0x40u);
  return static_cast<BFloat16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace plumbline::cpu
