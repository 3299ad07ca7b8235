#pragma once

#include "engine/kernels/cpu/attention_op.h"
#include "engine/kernels/cpu/instances.h"
#include "engine/kernels/cpu/product_op.h"
#include "engine/kernels/cpu/qkv_op.h"
#include "engine/kernels/cpu/small_ops.h"

namespace plumbline::cpu {

// Every operation, compiled for the vectors V. Bf16Weights is how products read bfloat16 weights.
template <typename V, typename Bf16Weights>
constexpr Kernels KernelsOf(Isa isa) {
  return {
      .isa = isa,
      .embedding = Embedding<V>,
      .rms_norm = RmsNorm<V>,
      .qkv = Qkv<V>,
      .attention = Attention<V>,
      .attention_combine = AttentionCombine<V>,
      .silu_mul = SiluMul<V>,
      .gather_rows = GatherRows<V>,
      .arg_max = ArgMax<V>,
      .product = Product<V, Bf16Weights>,
  };
}

}  // namespace plumbline::cpu
