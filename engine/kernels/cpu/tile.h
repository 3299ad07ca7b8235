#pragma once

#include <array>
#include <cstddef>

#include "engine/kernels/cpu/dtype.h"
#include "engine/kernels/cpu/inlining.h"

// The inner loop of every product and of attention: some rows of a against some vectors of b, sums in
// registers.
namespace plumbline::cpu {

inline constexpr std::int64_t kLanes = 16;

// sums[r][p] (+)= a[r][k] * b[p][k] for k = 0 to count - 1, in this order. b[p][k] are sixteen columns; b
// lies in segments (the blocks of a paged cache). A step takes Step::kInputs values of k.
template <typename AElement, typename BElement>
struct TileArgs {
  const AElement* a;  // row r at a + r * a_stride
  std::int64_t a_stride;
  std::int64_t count;
  const BElement* const* b;     // [segments, vectors]: where each vector starts in each segment
  std::int64_t b_stride;        // elements from one step to the next
  std::int64_t segment_length;  // values of k; a multiple of Step::kInputs
  std::int64_t ahead;           // bytes beyond b at which to prefetch
  float* sums;                  // row r, vector p at sums + r * sums_stride + p * 16
  std::int64_t sums_stride;
  int used;    // vectors to store; b beyond them is valid memory whose sums are dropped
  bool fresh;  // start from 0, not from what sums holds
};

// One step of float32 or bfloat16 b: a is broadcast, b widened.
template <typename V, typename B>
struct PlainStep {
  using AElement = float;
  using BElement = B;
  static constexpr std::int64_t kInputs = 1;
  static constexpr bool kConverts = false;

  template <int R, int P>
  PLUMBLINE_INLINE static void Add(const float* a, std::int64_t a_stride, const B* const (&b)[P],
                                   std::int64_t at, V (&sums)[R][P]) {
    V loaded[P];
    Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA { loaded[p] = V::Load(b[p] + at); });
    Unroll<R>([&](auto r) PLUMBLINE_INLINE_LAMBDA {
      const V broadcast = V::Set(a[r * a_stride]);
      Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA { sums[r][p] = Fma(broadcast, loaded[p], sums[r][p]); });
    });
  }
};

// Each sum is one chain over k, whatever R and P are: a row's result does not depend on what else is in the
// batch.
template <typename V, typename Step, int R, int P>
void MultiplyTile(const TileArgs<typename Step::AElement, typename Step::BElement>& args) {
  V sums[R][P];
  Unroll<R>([&](auto r) PLUMBLINE_INLINE_LAMBDA {
    Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA {
      const float* from = args.sums + r * args.sums_stride + p * kLanes;
      sums[r][p] = args.fresh || p >= args.used ? V::Zero() : V::Load(from);
    });
  });
  const auto* a = args.a;
  const auto* const* segment = args.b;
  for (std::int64_t left = args.count; left > 0; left -= args.segment_length, segment += P) {
    const typename Step::BElement* b[P];
    Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA { b[p] = segment[p]; });
    const std::int64_t end = Smaller(left, args.segment_length) / Step::kInputs * args.b_stride;
    for (std::int64_t at = 0; at < end; at += args.b_stride, a += Step::kInputs) {
      Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA {
        Prefetch(reinterpret_cast<const std::byte*>(b[p] + at) + args.ahead);
      });
      Step::template Add<R, P>(a, args.a_stride, b, at, sums);
    }
    if constexpr (Step::kInputs > 1) {
      if (left < args.segment_length && left % Step::kInputs != 0) {
        Step::template AddLast<R, P>(a, args.a_stride, b, end, sums);
      }
    }
  }
  Unroll<R>([&](auto r) PLUMBLINE_INLINE_LAMBDA {
    Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA {
      if (p < args.used) sums[r][p].Store(args.sums + r * args.sums_stride + p * kLanes);
    });
  });
}

// The most rows of a tile of P vectors whose sums, b and a broadcast fit the registers.
template <typename V>
PLUMBLINE_INLINE constexpr int MaxTileRows(int vectors) {
  return (V::kRegisters - 1) / (vectors * V::kRegistersPerVec) - 1;
}

// How many vectors wide a tile of so many rows is: few rows need several independent sums to hide the latency
// of a multiply-add, many rows want few loads of b.
template <typename V>
PLUMBLINE_INLINE constexpr int TileVectors(int rows) {
  return rows <= MaxTileRows<V>(4) ? 4 : (rows <= MaxTileRows<V>(2) ? 2 : 1);
}

inline constexpr int kMaxTileVectors = 4;

// The rows of the largest tile: 6 x 16 on AVX2, 14 x 32 on AVX-512.
template <typename V>
inline constexpr int kLargestTileRows = V::kRegistersPerVec == 2 ? MaxTileRows<V>(1) : MaxTileRows<V>(2);

// MultiplyTile for 1 to kLargestTileRows rows, each with its width.
template <typename V, typename Step>
struct TileTable {
  using Args = TileArgs<typename Step::AElement, typename Step::BElement>;
  struct Entry {
    void (*multiply)(const Args&);
    int vectors;
  };

  template <int... rows>
  static constexpr std::array<Entry, sizeof...(rows)> Make(std::integer_sequence<int, rows...>) {
    return {Entry{MultiplyTile<V, Step, rows + 1, TileVectors<V>(rows + 1)>, TileVectors<V>(rows + 1)}...};
  }

  static constexpr auto kEntries = Make(std::make_integer_sequence<int, kLargestTileRows<V>>{});

  PLUMBLINE_INLINE static const Entry& For(std::int64_t rows) { return kEntries.data()[rows - 1]; }
};

// Rows cut into tiles as evenly as can be.
template <typename V>
struct RowTiles {
  std::int64_t rows;
  std::int64_t count;

  PLUMBLINE_INLINE explicit RowTiles(std::int64_t of)
      : rows(of), count((of + kLargestTileRows<V> - 1) / kLargestTileRows<V>) {}
  PLUMBLINE_INLINE std::int64_t Begin(std::int64_t tile) const { return rows * tile / count; }
  // Vectors that the narrowest tile is wide.
  PLUMBLINE_INLINE int Vectors() const { return TileVectors<V>(static_cast<int>(rows / count)); }
};

}  // namespace plumbline::cpu
