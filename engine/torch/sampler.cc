#include "engine/torch/sampler.h"

// One header an operation: ATen/ATen.h takes three times as long to compile.
#include <ATen/core/Tensor.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <algorithm>

#include "engine/torch/checkpoint/random_bits.h"

namespace plumbline {
namespace {

// Uniform on [0, 1), 53 bits.
double UniformDraw(std::uint64_t seed, std::int64_t index) {
  return static_cast<double>(RandomBits(MixBits(seed), static_cast<std::uint64_t>(index)) >> 11) * 0x1p-53;
}

}  // namespace

TokenId SampleToken(std::span<const float> logits, const SamplingParams& params, std::int64_t output_index) {
  const auto size = static_cast<std::int64_t>(logits.size());
  at::Tensor scores = at::from_blob(const_cast<float*>(logits.data()), {size}, at::kFloat).to(at::kDouble);
  scores = scores.sub(scores.max()).div(params.temperature);
  at::Tensor ids;
  if (params.top_k > 0 || params.top_p < 1) {
    std::tie(scores, ids) = at::sort(scores, /*stable=*/true, /*dim=*/0, /*descending=*/true);
    if (params.top_k > 0) scores = scores.slice(0, 0, std::min<std::int64_t>(params.top_k, size));
  }
  const at::Tensor reached = at::softmax(scores, 0).cumsum(0);
  const double* first = reached.data_ptr<double>();
  const double* last = first + reached.numel();
  if (params.top_p < 1) last = std::min(last, std::lower_bound(first, last, params.top_p) + 1);
  const double target = UniformDraw(params.seed, output_index) * *(last - 1);
  const std::int64_t drawn = std::min(std::upper_bound(first, last, target), last - 1) - first;
  return static_cast<TokenId>(ids.defined() ? ids.data_ptr<std::int64_t>()[drawn] : drawn);
}

}  // namespace plumbline
