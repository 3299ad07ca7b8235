#pragma once

#include <immintrin.h>

#include <cstdint>

#include "engine/kernels/cpu/dtype.h"
#include "engine/kernels/cpu/inlining.h"

namespace plumbline::cpu {

// Sixteen floats in two registers. The sixteen lanes are the same on every instruction set, and so is the
// order in which Sum adds them: that makes results equal bit for bit.
struct VecAvx2 {
  static constexpr int kRegisters = 16;  // of the machine
  static constexpr int kRegistersPerVec = 2;

  __m256 low;
  __m256 high;

  PLUMBLINE_INLINE static VecAvx2 Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  PLUMBLINE_INLINE static VecAvx2 Set(float value) {
    const __m256 all = _mm256_set1_ps(value);
    return {all, all};
  }
  PLUMBLINE_INLINE static VecAvx2 Load(const float* from) {
    return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
  }
  PLUMBLINE_INLINE static VecAvx2 Load(const BFloat16* from) {
    return {WidenEight(from), WidenEight(from + 8)};
  }
  // The first `count` (0 to 16); the other lanes are zero, their memory is not touched.
  PLUMBLINE_INLINE static VecAvx2 LoadPart(const float* from, std::int64_t count) {
    return {_mm256_maskload_ps(from, PartMask(count)), _mm256_maskload_ps(from + 8, PartMask(count - 8))};
  }
  PLUMBLINE_INLINE void Store(float* to) const {
    _mm256_storeu_ps(to, low);
    _mm256_storeu_ps(to + 8, high);
  }
  PLUMBLINE_INLINE void StorePart(float* to, std::int64_t count) const {
    _mm256_maskstore_ps(to, PartMask(count), low);
    _mm256_maskstore_ps(to + 8, PartMask(count - 8), high);
  }
  // Sixteen pairs of bfloat16, as PackedWeight holds them: the first and the second of each pair.
  PLUMBLINE_INLINE static void LoadPairs(const std::uint32_t* from, VecAvx2& first, VecAvx2& second) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 8));
    const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    first = {_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
    second = {_mm256_castsi256_ps(_mm256_and_si256(a, upper)),
              _mm256_castsi256_ps(_mm256_and_si256(b, upper))};
  }

  PLUMBLINE_INLINE friend VecAvx2 Fma(VecAvx2 a, VecAvx2 b, VecAvx2 c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  PLUMBLINE_INLINE friend VecAvx2 operator+(VecAvx2 a, VecAvx2 b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  PLUMBLINE_INLINE friend VecAvx2 operator-(VecAvx2 a, VecAvx2 b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  PLUMBLINE_INLINE friend VecAvx2 operator*(VecAvx2 a, VecAvx2 b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  PLUMBLINE_INLINE friend VecAvx2 operator/(VecAvx2 a, VecAvx2 b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  // b where either is NaN.
  PLUMBLINE_INLINE friend VecAvx2 Max(VecAvx2 a, VecAvx2 b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  PLUMBLINE_INLINE friend VecAvx2 Min(VecAvx2 a, VecAvx2 b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  PLUMBLINE_INLINE VecAvx2 Round() const {
    return {_mm256_round_ps(low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
            _mm256_round_ps(high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  // 2^lane; lanes are whole numbers from -126 to 127.
  PLUMBLINE_INLINE VecAvx2 PowerOfTwo() const { return {PowerOfTwo(low), PowerOfTwo(high)}; }
  // This value, zero in the lanes where x < bound; a NaN in x keeps it.
  PLUMBLINE_INLINE VecAvx2 ZeroWhereBelow(VecAvx2 x, VecAvx2 bound) const {
    return {_mm256_and_ps(low, _mm256_cmp_ps(x.low, bound.low, _CMP_NLT_UQ)),
            _mm256_and_ps(high, _mm256_cmp_ps(x.high, bound.high, _CMP_NLT_UQ))};
  }
  // The first `count` lanes, `other` in the rest. Any count.
  PLUMBLINE_INLINE VecAvx2 First(std::int64_t count, VecAvx2 other) const {
    return {_mm256_blendv_ps(other.low, low, _mm256_castsi256_ps(PartMask(count))),
            _mm256_blendv_ps(other.high, high, _mm256_castsi256_ps(PartMask(count - 8)))};
  }
  // Bit i: lane i equals.
  PLUMBLINE_INLINE unsigned EqualMask(VecAvx2 other) const {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(low, other.low, _CMP_EQ_OQ))) |
           static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(high, other.high, _CMP_EQ_OQ))) << 8;
  }
  PLUMBLINE_INLINE float Sum() const {
    const __m256 eight = _mm256_add_ps(low, high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
  PLUMBLINE_INLINE float Largest() const {
    const __m256 eight = _mm256_max_ps(low, high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }
  // a = (A, B), b = (C, D) in halves become (A, C) and (B, D).
  PLUMBLINE_INLINE friend void SplitHalves(VecAvx2 a, VecAvx2 b, VecAvx2& firsts, VecAvx2& seconds) {
    firsts = {a.low, b.low};
    seconds = {a.high, b.high};
  }

 private:
  PLUMBLINE_INLINE static __m256 WidenEight(const BFloat16* from) {
    const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16));
  }
  PLUMBLINE_INLINE static __m256i PartMask(std::int64_t count) {
    const int lanes = static_cast<int>(count < 0 ? 0 : (count > 8 ? 8 : count));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  PLUMBLINE_INLINE static __m256 PowerOfTwo(__m256 exponent) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(exponent), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
};

}  // namespace plumbline::cpu
