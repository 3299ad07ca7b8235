#pragma once

#include <immintrin.h>

#include <cstdint>

#include "engine/kernels/cpu/dtype.h"
#include "engine/kernels/cpu/inlining.h"

namespace plumbline::cpu {

// Sixteen floats in one register; the operations are those of VecAvx2, described there. `Tag` keeps the two
// AVX-512 builds' functions apart for the linker.
template <typename Tag>
struct VecAvx512 {
  static constexpr int kRegisters = 32;
  static constexpr int kRegistersPerVec = 1;

  __m512 all;

  PLUMBLINE_INLINE static VecAvx512 Zero() { return {_mm512_setzero_ps()}; }
  PLUMBLINE_INLINE static VecAvx512 Set(float value) { return {_mm512_set1_ps(value)}; }
  PLUMBLINE_INLINE static VecAvx512 Load(const float* from) { return {_mm512_loadu_ps(from)}; }
  PLUMBLINE_INLINE static VecAvx512 Load(const BFloat16* from) {
    const __m256i sixteen = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(sixteen), 16))};
  }
  PLUMBLINE_INLINE static VecAvx512 LoadPart(const float* from, std::int64_t count) {
    return {_mm512_maskz_loadu_ps(PartMask(count), from)};
  }
  PLUMBLINE_INLINE void Store(float* to) const { _mm512_storeu_ps(to, all); }
  PLUMBLINE_INLINE void StorePart(float* to, std::int64_t count) const {
    _mm512_mask_storeu_ps(to, PartMask(count), all);
  }
  PLUMBLINE_INLINE static void LoadPairs(const std::uint32_t* from, VecAvx512& first, VecAvx512& second) {
    const __m512i pairs = _mm512_loadu_si512(from);
    first = {_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16))};
    second = {_mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
  }

  PLUMBLINE_INLINE friend VecAvx512 Fma(VecAvx512 a, VecAvx512 b, VecAvx512 c) {
    return {_mm512_fmadd_ps(a.all, b.all, c.all)};
  }
  PLUMBLINE_INLINE friend VecAvx512 operator+(VecAvx512 a, VecAvx512 b) {
    return {_mm512_add_ps(a.all, b.all)};
  }
  PLUMBLINE_INLINE friend VecAvx512 operator-(VecAvx512 a, VecAvx512 b) {
    return {_mm512_sub_ps(a.all, b.all)};
  }
  PLUMBLINE_INLINE friend VecAvx512 operator*(VecAvx512 a, VecAvx512 b) {
    return {_mm512_mul_ps(a.all, b.all)};
  }
  PLUMBLINE_INLINE friend VecAvx512 operator/(VecAvx512 a, VecAvx512 b) {
    return {_mm512_div_ps(a.all, b.all)};
  }
  PLUMBLINE_INLINE friend VecAvx512 Max(VecAvx512 a, VecAvx512 b) { return {_mm512_max_ps(a.all, b.all)}; }
  PLUMBLINE_INLINE friend VecAvx512 Min(VecAvx512 a, VecAvx512 b) { return {_mm512_min_ps(a.all, b.all)}; }
  PLUMBLINE_INLINE VecAvx512 Round() const {
    return {_mm512_roundscale_ps(all, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  PLUMBLINE_INLINE VecAvx512 PowerOfTwo() const {
    const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(all), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
  }
  PLUMBLINE_INLINE VecAvx512 ZeroWhereBelow(VecAvx512 x, VecAvx512 bound) const {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.all, bound.all, _CMP_NLT_UQ), all)};
  }
  PLUMBLINE_INLINE VecAvx512 First(std::int64_t count, VecAvx512 other) const {
    return {_mm512_mask_mov_ps(other.all, PartMask(count), all)};
  }
  PLUMBLINE_INLINE unsigned EqualMask(VecAvx512 other) const {
    return _mm512_cmp_ps_mask(all, other.all, _CMP_EQ_OQ);
  }
  PLUMBLINE_INLINE float Sum() const {
    const __m256 eight = _mm256_add_ps(Low(all), High(all));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
  PLUMBLINE_INLINE float Largest() const {
    const __m256 eight = _mm256_max_ps(Low(all), High(all));
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }
  PLUMBLINE_INLINE friend void SplitHalves(VecAvx512 a, VecAvx512 b, VecAvx512& firsts, VecAvx512& seconds) {
    firsts = {_mm512_shuffle_f32x4(a.all, b.all, _MM_SHUFFLE(1, 0, 1, 0))};
    seconds = {_mm512_shuffle_f32x4(a.all, b.all, _MM_SHUFFLE(3, 2, 3, 2))};
  }

 private:
  PLUMBLINE_INLINE static __m256 Low(__m512 value) { return _mm512_castps512_ps256(value); }
  PLUMBLINE_INLINE static __m256 High(__m512 value) { return _mm512_extractf32x8_ps(value, 1); }
  PLUMBLINE_INLINE static __mmask16 PartMask(std::int64_t count) {
    const unsigned lanes = static_cast<unsigned>(count < 0 ? 0 : (count > 16 ? 16 : count));
    return static_cast<__mmask16>((1u << lanes) - 1u);
  }
};

}  // namespace plumbline::cpu
