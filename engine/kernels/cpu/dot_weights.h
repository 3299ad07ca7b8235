#pragma once

#include <immintrin.h>

#include "engine/kernels/cpu/product_op.h"

namespace plumbline::cpu {

// bfloat16 weights with AVX512-BF16: x is rounded to bfloat16 pairs, and one instruction multiplies sixteen
// pairs of weights by a pair of x and adds both products to float32 sums. V must be the VecAvx512 of this
// source.
template <typename V>
struct DotWeights {
  using AElement = std::uint32_t;  // a pair, the first input in the lower half
  using BElement = std::uint32_t;
  static constexpr bool kConverts = true;
  static constexpr std::int64_t kInputsPerElement = 2;
  static constexpr std::int64_t kInputs = 1;  // a pair counts as one

  PLUMBLINE_INLINE static void Convert(const float* x, std::int64_t inputs, AElement* pairs) {
    for (std::int64_t k = 0; k < inputs; k += 2 * kLanes) {
      const std::int64_t lanes = Smaller(2 * kLanes, inputs - k);
      const V first = LoadUpTo<V>(x + k, Smaller(lanes, kLanes));
      const V second = lanes > kLanes ? LoadUpTo<V>(x + k + kLanes, lanes - kLanes) : V::Zero();
      const auto narrow = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second.all, first.all));
      const unsigned stored = (1u << ((lanes + 1) / 2)) - 1u;
      _mm512_mask_storeu_epi32(pairs + k / 2, static_cast<__mmask16>(stored), narrow);
    }
  }

  template <int R, int P>
  PLUMBLINE_INLINE static void Add(const AElement* a, std::int64_t a_stride, const BElement* const (&b)[P],
                                   std::int64_t at, V (&sums)[R][P]) {
    __m512i loaded[P];
    Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA { loaded[p] = _mm512_loadu_si512(b[p] + at); });
    Unroll<R>([&](auto r) PLUMBLINE_INLINE_LAMBDA {
      const __m512i broadcast = _mm512_set1_epi32(static_cast<int>(a[r * a_stride]));
      Unroll<P>([&](auto p) PLUMBLINE_INLINE_LAMBDA {
        sums[r][p].all = _mm512_dpbf16_ps(sums[r][p].all, reinterpret_cast<__m512bh>(broadcast),
                                          reinterpret_cast<__m512bh>(loaded[p]));
      });
    });
  }
};

}  // namespace plumbline::cpu
