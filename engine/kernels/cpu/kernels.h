#pragma once

#include <cstdint>

#include "engine/kernels/cpu/dtype.h"
#include "engine/kernels/cpu/isa.h"
#include "engine/kernels/cpu/packed_weight.h"

// The CPU operations of a decoder-only transformer, on raw pointers.
//
// Threads. An operation is called by every thread of a team with the same arguments and its own
// (thread, threads); each call does one slice and returns. No operation opens a parallel region, waits,
// allocates or throws: the caller opens ONE parallel region a step (OpenMP) and puts a barrier between two
// operations of which the second reads what the first wrote. threads = 1 does the whole.
//
// Shapes. Matrices are row-major with a stride in elements where one is named, else dense. "rows" or "tokens"
// may be 0. Activations are float32; only weights and the KV cache may be bfloat16. Pointers need no
// alignment beyond that of their type, except those of KvCache. Outputs must not overlap inputs unless it
// says so.
//
// Same bits. What is computed for one row (one token) depends neither on the other rows of the batch, nor on
// the number of threads, nor on how a prompt was cut into chunks: every sum over K, over the head dimension
// and over the context has one fixed order. So batched, chunked, preempted and prefix-cached runs give equal
// logits bit for bit. Except for products of bfloat16 weights on Isa::kAvx512Bf16 (which rounds activations
// to bfloat16), the result is also the same on every instruction set.
namespace plumbline::cpu {

// out[i] = table[ids[i]]. Ids must lie below the table's rows: check them where a request comes in.
struct EmbeddingArgs {
  const std::int32_t* ids = nullptr;
  std::int64_t tokens = 0;
  const void* table = nullptr;  // [vocabulary, hidden]
  Dtype table_dtype = Dtype::kFloat32;
  std::int64_t hidden = 0;
  float* out = nullptr;  // [tokens, hidden]
};

// residual += delta (where delta is given); out = residual / sqrt(mean(residual^2) + epsilon) * weight.
struct RmsNormArgs {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  float* residual = nullptr;      // [rows, hidden]; written only with delta
  const float* delta = nullptr;   // [rows, hidden] or null
  const float* weight = nullptr;  // [hidden]
  float epsilon = 0;
  float* out = nullptr;  // [rows, hidden]; may be residual's own memory only when delta is null
};

// One layer's paged cache. Slot s is token s % block_size of block s / block_size.
//   keys   [blocks, kv_heads, head_dim, block_size]   (transposed: a score reads 16 tokens at once)
//   values [blocks, kv_heads, block_size, head_dim]
// Both 64-byte aligned. block_size is a multiple of 16, head_dim a multiple of 16 up to 256. Memory that was
// never written may hold anything, NaN included: it is never used.
struct KvCache {
  void* keys = nullptr;
  void* values = nullptr;
  Dtype dtype = Dtype::kFloat32;
  std::int64_t block_size = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;

  // Elements of one block, in keys and in values alike.
  std::int64_t BlockElements() const { return kv_heads * head_dim * block_size; }
};

constexpr std::int64_t kBlockSizeMultiple = 16;
constexpr std::int64_t kHeadDimMultiple = 16;
constexpr std::int64_t kMaxHeadDim = 256;

// In this order, for each token: adds the bias; norms each q and k head (Qwen3); turns q and k by the rotary
// embedding (the two halves of the first rotary_dim dimensions are the pairs, as GPT-NeoX and Hugging Face
// do); writes q back in place, and k and v to the cache. k and v in `qkv` are left undefined.
struct QkvArgs {
  std::int64_t tokens = 0;
  float* qkv = nullptr;  // [tokens, (q_heads + 2 kv_heads) * head_dim]: q, k, v
  std::int64_t qkv_stride = 0;
  std::int64_t q_heads = 0;
  const float* bias = nullptr;    // as a row of qkv, or null (null too where Product added it)
  const float* q_norm = nullptr;  // [head_dim] or null
  const float* k_norm = nullptr;  // [head_dim] or null
  float norm_epsilon = 0;
  const float* cos_sin = nullptr;  // [positions, rotary_dim]: rotary_dim / 2 cosines, then as many sines
  std::int64_t rotary_dim = 0;     // even, 0 to head_dim
  const std::int32_t* positions = nullptr;  // [tokens], below the table's rows
  const std::int64_t* slots = nullptr;      // [tokens]; -1: this token's k and v are not stored
  KvCache cache;
};

// Causal attention of a batch in which prompts, chunks of prompts and single decodes stand side by side.
// Query i of sequence s stands at position context_lengths[s] - queries(s) + i and sees every token up to its
// own, all of which are in the cache already (a sequence may be given with only its last queries). The q
// heads h * group to h * group + group - 1 share kv head h, group = q_heads / kv_heads, at most 64. Two calls
// with a barrier between them: attention, then attention_combine. Long contexts of few sequences are cut into
// parts, which the second call puts together; when there are none, it returns at once.
struct AttentionArgs {
  std::int64_t sequences = 0;
  const std::int32_t* query_starts = nullptr;  // [sequences + 1]: first row of each in q and out; ascending
  const std::int32_t* context_lengths = nullptr;  // [sequences], this step's tokens included
  const std::int32_t* block_tables = nullptr;     // [sequences, block_table_stride]: block numbers
  std::int64_t block_table_stride = 0;
  const float* q = nullptr;  // [rows, q_heads * head_dim]; the q part of qkv serves with its stride
  std::int64_t q_stride = 0;
  std::int64_t q_heads = 0;
  float scale = 0;  // usually 1 / sqrt(head_dim)
  KvCache cache;
  float* out = nullptr;  // [rows, q_heads * head_dim]
  std::int64_t out_stride = 0;
  // Room for the parts of cut contexts; with less than is needed nothing is cut (slower, the same result).
  float* scratch = nullptr;
  std::int64_t scratch_floats = 0;
};

// Scratch with which a batch can be cut for every thread of a team, whatever its contexts are.
std::int64_t AttentionScratchFloats(int threads, std::int64_t max_context, std::int64_t q_heads,
                                    std::int64_t kv_heads, std::int64_t head_dim);

// out = silu(gate) * up. For products that could not fuse it (ProductOutput::kSiluMul).
struct SiluMulArgs {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const float* gate_up = nullptr;  // [rows, 2 * width]: gate, up
  float* out = nullptr;            // [rows, width]
};

// out[i] = in[rows[i]]: the rows that are sampled.
struct GatherRowsArgs {
  std::int64_t count = 0;
  std::int64_t width = 0;
  const std::int32_t* rows = nullptr;
  const float* in = nullptr;
  std::int64_t in_stride = 0;
  float* out = nullptr;  // [count, width]
};

// The index of the largest logit of each row, the lowest one of equals; NaN is never the largest; 0 where all
// are NaN or -infinity.
struct ArgMaxArgs {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const float* logits = nullptr;
  std::int64_t stride = 0;
  std::int32_t* out = nullptr;  // [rows]
};

enum class ProductOutput {
  kStore,       // y = x W^T + bias
  kAccumulate,  // y += x W^T + bias (the residual stream)
  kSiluMul,     // W packed kGateUp: y = silu(gate) * up, [rows, outputs / 2]
};

// y[rows, N] from x[rows, K] and W[N, K]. With bfloat16 weights on AVX2 and AVX-512 the weights are widened
// in registers and all arithmetic is float32; on AVX512-BF16 x is rounded to bfloat16, sums stay float32.
struct ProductArgs {
  std::int64_t rows = 0;
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  const PackedWeight* weight = nullptr;
  const float* bias = nullptr;  // [N] (kGateUp: gate, then up) or null
  float* y = nullptr;
  std::int64_t y_stride = 0;
  ProductOutput output = ProductOutput::kStore;
};

// All operations for one instruction set.
struct Kernels {
  Isa isa;
  void (*embedding)(const EmbeddingArgs&, int thread, int threads);
  void (*rms_norm)(const RmsNormArgs&, int thread, int threads);
  void (*qkv)(const QkvArgs&, int thread, int threads);
  void (*attention)(const AttentionArgs&, int thread, int threads);
  void (*attention_combine)(const AttentionArgs&, int thread, int threads);
  void (*silu_mul)(const SiluMulArgs&, int thread, int threads);
  void (*gather_rows)(const GatherRowsArgs&, int thread, int threads);
  void (*arg_max)(const ArgMaxArgs&, int thread, int threads);
  void (*product)(const ProductArgs&, int thread, int threads);
};

// Throws Error(kEngineFailed) where the CPU lacks the instruction set.
const Kernels& KernelsFor(Isa isa);
inline const Kernels& BestKernels() {
  return KernelsFor(BestIsa());
}

}  // namespace plumbline::cpu
