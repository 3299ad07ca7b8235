#pragma once

#include <cstdint>
#include <utility>

// Everything that the sources of one instruction set share is a template over its vector type, or is inlined
// always. An ordinary inline function would be emitted once a source, and the linker might keep the AVX-512
// copy for callers on a machine without it.
#define PLUMBLINE_INLINE [[gnu::always_inline]] inline
#define PLUMBLINE_INLINE_LAMBDA __attribute__((always_inline))

namespace plumbline::cpu {

template <typename Body, int... index>
PLUMBLINE_INLINE void UnrollSequence(Body body, std::integer_sequence<int, index...>) {
  (body(std::integral_constant<int, index>{}), ...);
}

// Calls body(0) to body(count - 1), with the index as a constant: accumulators in arrays stay in registers.
template <int count, typename Body>
PLUMBLINE_INLINE void Unroll(Body body) {
  UnrollSequence(body, std::make_integer_sequence<int, count>{});
}

struct Slice {
  std::int64_t begin;
  std::int64_t end;
};

// The part of [0, count) that is this thread's; parts differ by one at most.
PLUMBLINE_INLINE Slice SliceOf(std::int64_t count, int thread, int threads) {
  return {count * thread / threads, count * (thread + 1) / threads};
}

PLUMBLINE_INLINE std::int64_t Smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
PLUMBLINE_INLINE std::int64_t Larger(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}

// Into the second-level cache. Never faults, whatever the address.
PLUMBLINE_INLINE void Prefetch(const void* address) {
  __builtin_prefetch(address, 0, 2);
}

}  // namespace plumbline::cpu
