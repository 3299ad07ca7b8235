#pragma once

#include "engine/kernels/cpu/inlining.h"
#include "engine/kernels/cpu/kernels.h"
#include "engine/kernels/cpu/tile.h"

// Operations that treat each row on its own. V is a vector of sixteen floats (VecAvx2, VecAvx512).
namespace plumbline::cpu {

// e^x within 2 units in the last place; 0 below -87.3, clamped above 88.3; NaN stays NaN. exp(0) is exactly
// 1, on which attention relies. Cody and Waite's reduction by ln 2 in two parts, then a polynomial of degree
// 7 (Taylor; the remainder on |r| <= ln(2) / 2 is below 6e-9).
template <typename V>
PLUMBLINE_INLINE V Exp(V x) {
  const V lowest = V::Set(-87.3f);
  const V clamped = Min(V::Set(88.3f), Max(lowest, x));
  const V power = (clamped * V::Set(1.44269504f)).Round();
  V r = Fma(power, V::Set(-0.693359375f), clamped);
  r = Fma(power, V::Set(2.12194440e-4f), r);
  V sum = V::Set(1.0f / 5040);
  sum = Fma(sum, r, V::Set(1.0f / 720));
  sum = Fma(sum, r, V::Set(1.0f / 120));
  sum = Fma(sum, r, V::Set(1.0f / 24));
  sum = Fma(sum, r, V::Set(1.0f / 6));
  sum = Fma(sum, r, V::Set(0.5f));
  sum = Fma(sum, r, V::Set(1.0f));
  sum = Fma(sum, r, V::Set(1.0f));
  return (sum * power.PowerOfTwo()).ZeroWhereBelow(x, lowest);
}

// x * sigmoid(x)
template <typename V>
PLUMBLINE_INLINE V Silu(V x) {
  return x / (V::Set(1.0f) + Exp(V::Zero() - x));
}

// Calls body(offset, lanes) for each sixteen elements of a row; lanes is 16 but for the last.
template <typename Body>
PLUMBLINE_INLINE void ForSixteens(std::int64_t width, Body body) {
  for (std::int64_t i = 0; i < width; i += kLanes) body(i, Smaller(kLanes, width - i));
}

template <typename V>
PLUMBLINE_INLINE V LoadUpTo(const float* from, std::int64_t lanes) {
  return lanes == kLanes ? V::Load(from) : V::LoadPart(from, lanes);
}

template <typename V>
PLUMBLINE_INLINE void StoreUpTo(V value, float* to, std::int64_t lanes) {
  if (lanes == kLanes) {
    value.Store(to);
  } else {
    value.StorePart(to, lanes);
  }
}

template <typename V>
PLUMBLINE_INLINE void CopyRow(const float* from, std::int64_t width, float* to) {
  ForSixteens(width, [&](std::int64_t i, std::int64_t lanes)
                         PLUMBLINE_INLINE_LAMBDA { StoreUpTo(LoadUpTo<V>(from + i, lanes), to + i, lanes); });
}

template <typename V>
void Embedding(const EmbeddingArgs& args, int thread, int threads) {
  const Slice slice = SliceOf(args.tokens, thread, threads);
  for (std::int64_t token = slice.begin; token < slice.end; ++token) {
    const std::int64_t first = args.ids[token] * args.hidden;
    float* out = args.out + token * args.hidden;
    if (args.table_dtype == Dtype::kFloat32) {
      CopyRow<V>(static_cast<const float*>(args.table) + first, args.hidden, out);
    } else {
      const BFloat16* row = static_cast<const BFloat16*>(args.table) + first;
      for (std::int64_t i = 0; i < args.hidden; ++i) out[i] = Widen(row[i]);
    }
  }
}

// 1 / sqrt(mean(x^2) + epsilon)
template <typename V>
PLUMBLINE_INLINE float InverseRms(const float* x, std::int64_t width, float epsilon) {
  V squares = V::Zero();
  ForSixteens(width, [&](std::int64_t i, std::int64_t lanes) PLUMBLINE_INLINE_LAMBDA {
    const V value = LoadUpTo<V>(x + i, lanes);
    squares = Fma(value, value, squares);
  });
  return 1.0f / __builtin_sqrtf(squares.Sum() / static_cast<float>(width) + epsilon);
}

template <typename V>
PLUMBLINE_INLINE void NormRow(const float* x, const float* weight, std::int64_t width, float epsilon,
                              float* out) {
  const V inverse = V::Set(InverseRms<V>(x, width, epsilon));
  ForSixteens(width, [&](std::int64_t i, std::int64_t lanes) PLUMBLINE_INLINE_LAMBDA {
    StoreUpTo(LoadUpTo<V>(x + i, lanes) * inverse * LoadUpTo<V>(weight + i, lanes), out + i, lanes);
  });
}

template <typename V>
void RmsNorm(const RmsNormArgs& args, int thread, int threads) {
  const Slice slice = SliceOf(args.rows, thread, threads);
  for (std::int64_t row = slice.begin; row < slice.end; ++row) {
    float* residual = args.residual + row * args.hidden;
    if (args.delta != nullptr) {
      const float* delta = args.delta + row * args.hidden;
      ForSixteens(args.hidden, [&](std::int64_t i, std::int64_t lanes) PLUMBLINE_INLINE_LAMBDA {
        StoreUpTo(LoadUpTo<V>(residual + i, lanes) + LoadUpTo<V>(delta + i, lanes), residual + i, lanes);
      });
    }
    NormRow<V>(residual, args.weight, args.hidden, args.epsilon, args.out + row * args.hidden);
  }
}

template <typename V>
void SiluMul(const SiluMulArgs& args, int thread, int threads) {
  const Slice slice = SliceOf(args.rows, thread, threads);
  for (std::int64_t row = slice.begin; row < slice.end; ++row) {
    const float* gate = args.gate_up + row * 2 * args.width;
    const float* up = gate + args.width;
    float* out = args.out + row * args.width;
    ForSixteens(args.width, [&](std::int64_t i, std::int64_t lanes) PLUMBLINE_INLINE_LAMBDA {
      StoreUpTo(Silu(LoadUpTo<V>(gate + i, lanes)) * LoadUpTo<V>(up + i, lanes), out + i, lanes);
    });
  }
}

template <typename V>
void GatherRows(const GatherRowsArgs& args, int thread, int threads) {
  const Slice slice = SliceOf(args.count, thread, threads);
  for (std::int64_t i = slice.begin; i < slice.end; ++i) {
    CopyRow<V>(args.in + args.rows[i] * args.in_stride, args.width, args.out + i * args.width);
  }
}

template <typename V>
void ArgMax(const ArgMaxArgs& args, int thread, int threads) {
  const Slice slice = SliceOf(args.rows, thread, threads);
  const V lowest = V::Set(-__builtin_inff());
  for (std::int64_t row = slice.begin; row < slice.end; ++row) {
    const float* logits = args.logits + row * args.stride;
    V largest = lowest;
    ForSixteens(args.width, [&](std::int64_t i, std::int64_t lanes) PLUMBLINE_INLINE_LAMBDA {
      largest = Max(LoadUpTo<V>(logits + i, lanes).First(lanes, lowest), largest);
    });
    const V wanted = V::Set(largest.Largest());
    args.out[row] = 0;
    if (wanted.EqualMask(lowest) != 0) continue;
    for (std::int64_t i = 0; i < args.width; i += kLanes) {
      const std::int64_t lanes = Smaller(kLanes, args.width - i);
      const unsigned equal = LoadUpTo<V>(logits + i, lanes).First(lanes, lowest).EqualMask(wanted);
      if (equal == 0) continue;
      args.out[row] = static_cast<std::int32_t>(i + __builtin_ctz(equal));
      break;
    }
  }
}

}  // namespace plumbline::cpu
