#pragma once

#include "engine/kernels/cpu/small_ops.h"
#include "engine/kernels/cpu/tile.h"

// y = x W^T with a PackedWeight. The rows of x are cut into blocks that stay in the second-level cache; a
// block walks through this thread's panels. All of K is summed in registers before a sum is finished (bias,
// residual, silu), so it has one order.
//
// Why not oneDNN. Its float32 matmul (2.6, AVX2) sums a row in another order when the batch has one row than
// when it has two: 965 of 1024 outputs differ at K = 512. Then chunked or preempted runs would not repeat the
// ids of undisturbed ones. It has no bfloat16 below AVX-512, and caches a primitive for each number of rows.
// kernels_benchmark, Zen 3, busy, one thread, CPU time a step: 16 rows 15.4 ms against 19.7, 2,048 rows 1,424
// against 1,452.
namespace plumbline::cpu {

// A policy for W is a Step (tile.h) and whether x is converted to Step::AElement first; then also
// kInputsPerElement and Convert.
template <typename V>
using Float32Weights = PlainStep<V, float>;

// bfloat16 pairs, widened in registers: the multiply-adds, not these shifts, fill the ports.
template <typename V>
struct WidenedWeights {
  using AElement = float;
  using BElement = std::uint32_t;
  static constexpr bool kConverts = false;
  static constexpr std::int64_t kInputs = 2;

  template <int R, int P>
  PLUMBLINE_INLINE static void Add(const float* a, std::int64_t a_stride, const BElement* const (&b)[P],
                                   std::int64_t at, V (&sums)[R][P]) {
    V first[P];
    V second[P];
    Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA { V::LoadPairs(b[p] + at, first[p], second[p]); });
    AddInput(a, a_stride, first, sums);
    AddInput(a + 1, a_stride, second, sums);
  }

  // The last input of an odd number.
  template <int R, int P>
  PLUMBLINE_INLINE static void AddLast(const float* a, std::int64_t a_stride, const BElement* const (&b)[P],
                                       std::int64_t at, V (&sums)[R][P]) {
    V first[P];
    V second[P];
    Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA { V::LoadPairs(b[p] + at, first[p], second[p]); });
    AddInput(a, a_stride, first, sums);
  }

 private:
  template <int R, int P>
  PLUMBLINE_INLINE static void AddInput(const float* a, std::int64_t a_stride, const V (&weights)[P],
                                        V (&sums)[R][P]) {
    Unroll<R>([&](auto r) PLUMBLINE_INLINE_LAMBDA {
      const V broadcast = V::Set(a[r * a_stride]);
      Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA { sums[r][p] = Fma(broadcast, weights[p], sums[r][p]); });
    });
  }
};

// What becomes of the sums of some rows and one panel. sums + i * sums_stride is row `row + i`.
template <typename V>
void FinishPanel(const ProductArgs& args, std::int64_t row, std::int64_t rows, std::int64_t panel,
                 const float* sums, std::int64_t sums_stride) {
  const std::int64_t first = panel * kLanes;
  const std::int64_t columns = Smaller(kLanes, args.weight->outputs() - first);
  const V bias = args.bias != nullptr ? V::LoadPart(args.bias + first, columns) : V::Zero();
  for (std::int64_t i = 0; i < rows; ++i) {
    float* y = args.y + (row + i) * args.y_stride + first;
    const V sum = V::Load(sums + i * sums_stride) + bias;
    StoreUpTo(args.output == ProductOutput::kAccumulate ? LoadUpTo<V>(y, columns) + sum : sum, y, columns);
  }
}

// A panel of kGateUp holds 8 gates and 8 ups: two rows fill a vector of each.
template <typename V>
void FinishGateUpPanel(const ProductArgs& args, std::int64_t row, std::int64_t rows, std::int64_t panel,
                       const float* sums, std::int64_t sums_stride) {
  constexpr std::int64_t kHalf = kLanes / 2;
  const std::int64_t width = args.weight->outputs() / 2;
  const std::int64_t first = panel * kHalf;
  const std::int64_t columns = Smaller(kHalf, width - first);
  V gate_bias = V::Zero();
  V up_bias = V::Zero();
  V unused;
  if (args.bias != nullptr) {
    const V gate = V::LoadPart(args.bias + first, columns);
    const V up = V::LoadPart(args.bias + width + first, columns);
    SplitHalves(gate, gate, gate_bias, unused);
    SplitHalves(up, up, up_bias, unused);
  }
  for (std::int64_t i = 0; i < rows; i += 2) {
    const std::int64_t other = i + 1 < rows ? i + 1 : i;
    V gates;
    V ups;
    SplitHalves(V::Load(sums + i * sums_stride), V::Load(sums + other * sums_stride), gates, ups);
    const V result = Silu(gates + gate_bias) * (ups + up_bias);
    V of_one;
    V of_other;
    SplitHalves(result, result, of_one, of_other);
    of_one.StorePart(args.y + (row + i) * args.y_stride + first, columns);
    of_other.StorePart(args.y + (row + other) * args.y_stride + first, columns);
  }
}

// Rows [rows.begin, rows.end) of y; `x` is the first of them.
template <typename V, typename Weights>
void MultiplyBlock(const ProductArgs& args, Slice rows, const typename Weights::AElement* x,
                   std::int64_t x_stride, std::int64_t count, Slice panels) {
  using Table = TileTable<V, Weights>;
  const PackedWeight& weight = *args.weight;
  const auto finish = args.output == ProductOutput::kSiluMul ? FinishGateUpPanel<V> : FinishPanel<V>;
  const RowTiles<V> tiles(rows.end - rows.begin);
  // All row tiles visit a few panels, then the next few: a panel comes from memory once.
  const std::int64_t few = tiles.Vectors();
  alignas(64) float sums[kLargestTileRows<V> * kMaxTileVectors * kLanes];
  for (std::int64_t begin = panels.begin; begin < panels.end; begin += few) {
    const std::int64_t end = Smaller(panels.end, begin + few);
    for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
      const std::int64_t first = tiles.Begin(tile);
      const std::int64_t height = tiles.Begin(tile + 1) - first;
      const auto& entry = Table::For(height);
      for (std::int64_t panel = begin; panel < end; panel += entry.vectors) {
        const int used = static_cast<int>(Smaller(entry.vectors, end - panel));
        const typename Weights::BElement* b[kMaxTileVectors];
        for (int p = 0; p < kMaxTileVectors; ++p) {
          b[p] =
              reinterpret_cast<const typename Weights::BElement*>(weight.panel(panel + (p < used ? p : 0)));
        }
        entry.multiply({.a = x + first * x_stride,
                        .a_stride = x_stride,
                        .count = count,
                        .b = b,
                        .b_stride = kLanes,
                        .segment_length = count + count % 2,
                        .ahead = entry.vectors * weight.panel_bytes(),
                        .sums = sums,
                        .sums_stride = kMaxTileVectors * kLanes,
                        .used = used,
                        .fresh = true});
        for (int p = 0; p < used; ++p) {
          finish(args, rows.begin + first, height, panel + p, sums + p * kLanes, kMaxTileVectors * kLanes);
        }
      }
    }
  }
}

// Rows of x that a block holds at least: a decode batch must be one block, or each block would fetch all
// weights from memory again.
inline constexpr std::int64_t kMinBlockRows = 48;
// Elements of x that should not exceed the second-level cache.
inline constexpr std::int64_t kBlockElements = 65536;
// Inputs on the stack where x is converted; at PackedWeight::kMaxInputs they are 3 rows.
inline constexpr std::int64_t kConvertedInputs = 262144;

template <typename V, typename Weights>
void ConvertAndMultiplyBlock(const ProductArgs& args, Slice rows, Slice panels) {
  alignas(64) typename Weights::AElement converted[kConvertedInputs / Weights::kInputsPerElement];
  const std::int64_t inputs = args.weight->inputs();
  const std::int64_t count = (inputs + Weights::kInputsPerElement - 1) / Weights::kInputsPerElement;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    Weights::Convert(args.x + row * args.x_stride, inputs, converted + (row - rows.begin) * count);
  }
  MultiplyBlock<V, Weights>(args, rows, converted, count, count, panels);
}

// The work is (row block, panel) pairs in this order; a thread takes one stretch of them.
template <typename V, typename Weights>
void ProductWith(const ProductArgs& args, int thread, int threads) {
  const std::int64_t inputs = args.weight->inputs();
  const std::int64_t panels = args.weight->panels();
  const std::int64_t block_rows =
      Weights::kConverts ? kConvertedInputs / (inputs + 1) : Larger(kMinBlockRows, kBlockElements / inputs);
  const std::int64_t blocks = (args.rows + block_rows - 1) / block_rows;
  const Slice slice = SliceOf(blocks * panels, thread, threads);
  for (std::int64_t unit = slice.begin; unit < slice.end;) {
    const Slice rows = SliceOf(args.rows, static_cast<int>(unit / panels), static_cast<int>(blocks));
    const std::int64_t panel = unit % panels;
    const Slice stretch{panel, Smaller(panels, panel + slice.end - unit)};
    if constexpr (Weights::kConverts) {
      ConvertAndMultiplyBlock<V, Weights>(args, rows, stretch);
    } else {
      MultiplyBlock<V, Weights>(args, rows, args.x + rows.begin * args.x_stride, args.x_stride, inputs,
                                stretch);
    }
    unit += stretch.end - stretch.begin;
  }
}

template <typename V, typename Bf16Weights>
void Product(const ProductArgs& args, int thread, int threads) {
  if (args.weight->dtype() == Dtype::kFloat32) {
    ProductWith<V, Float32Weights<V>>(args, thread, threads);
  } else {
    ProductWith<V, Bf16Weights>(args, thread, threads);
  }
}

}  // namespace plumbline::cpu
