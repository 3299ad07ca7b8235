#pragma once

#include "engine/kernels/cpu/small_ops.h"

// Between the qkv product and attention: bias, head norms, rotary embedding, and the write into the paged
// cache.
namespace plumbline::cpu {

// Turns one head in place. Pair i is (head[i], head[i + half]).
template <typename V>
PLUMBLINE_INLINE void Rotate(float* head, const float* cos_sin, std::int64_t half) {
  ForSixteens(half, [&](std::int64_t i, std::int64_t lanes) PLUMBLINE_INLINE_LAMBDA {
    const V cosine = LoadUpTo<V>(cos_sin + i, lanes);
    const V sine = LoadUpTo<V>(cos_sin + half + i, lanes);
    const V first = LoadUpTo<V>(head + i, lanes);
    const V second = LoadUpTo<V>(head + half + i, lanes);
    StoreUpTo(first * cosine - second * sine, head + i, lanes);
    StoreUpTo(second * cosine + first * sine, head + half + i, lanes);
  });
}

template <typename V>
PLUMBLINE_INLINE void NormAndRotate(const QkvArgs& args, const float* norm, const float* cos_sin,
                                    float* head) {
  if (norm != nullptr) NormRow<V>(head, norm, args.cache.head_dim, args.norm_epsilon, head);
  if (args.rotary_dim > 0) Rotate<V>(head, cos_sin, args.rotary_dim / 2);
}

PLUMBLINE_INLINE void StoreElement(float value, float* to) {
  *to = value;
}
PLUMBLINE_INLINE void StoreElement(float value, BFloat16* to) {
  *to = Narrow(value);
}

// One token's k (scattered into a column of the transposed block) and v (a row).
template <typename Element>
PLUMBLINE_INLINE void StoreKv(const KvCache& cache, std::int64_t slot, const float* k, const float* v) {
  const std::int64_t block = slot / cache.block_size;
  const std::int64_t offset = slot % cache.block_size;
  const std::int64_t head_elements = cache.head_dim * cache.block_size;
  for (std::int64_t head = 0; head < cache.kv_heads; ++head) {
    const std::int64_t first = (block * cache.kv_heads + head) * head_elements;
    Element* key = static_cast<Element*>(cache.keys) + first + offset;
    Element* value = static_cast<Element*>(cache.values) + first + offset * cache.head_dim;
    for (std::int64_t d = 0; d < cache.head_dim; ++d) StoreElement(k[d], key + d * cache.block_size);
    for (std::int64_t d = 0; d < cache.head_dim; ++d) StoreElement(v[d], value + d);
    k += cache.head_dim;
    v += cache.head_dim;
  }
}

template <typename V>
void Qkv(const QkvArgs& args, int thread, int threads) {
  const KvCache& cache = args.cache;
  const std::int64_t width = (args.q_heads + 2 * cache.kv_heads) * cache.head_dim;
  const Slice slice = SliceOf(args.tokens, thread, threads);
  for (std::int64_t token = slice.begin; token < slice.end; ++token) {
    float* row = args.qkv + token * args.qkv_stride;
    if (args.bias != nullptr) {
      ForSixteens(width, [&](std::int64_t i, std::int64_t lanes) PLUMBLINE_INLINE_LAMBDA {
        StoreUpTo(LoadUpTo<V>(row + i, lanes) + LoadUpTo<V>(args.bias + i, lanes), row + i, lanes);
      });
    }
    const float* cos_sin =
        args.rotary_dim > 0 ? args.cos_sin + args.positions[token] * args.rotary_dim : nullptr;
    float* k = row + args.q_heads * cache.head_dim;
    float* v = k + cache.kv_heads * cache.head_dim;
    for (float* head = row; head < k; head += cache.head_dim)
      NormAndRotate<V>(args, args.q_norm, cos_sin, head);
    const std::int64_t slot = args.slots[token];
    if (slot < 0) continue;
    for (float* head = k; head < v; head += cache.head_dim)
      NormAndRotate<V>(args, args.k_norm, cos_sin, head);
    if (cache.dtype == Dtype::kFloat32) {
      StoreKv<float>(cache, slot, k, v);
    } else {
      StoreKv<BFloat16>(cache, slot, k, v);
    }
  }
}

}  // namespace plumbline::cpu
