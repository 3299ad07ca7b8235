#include "engine/kernels/cpu/qkv_op.h"

#include <cmath>

#include "tests/engine/kernels/cpu/kernel_test.h"

namespace plumbline::cpu {
namespace {

class QkvOp : public KernelTest {};
PLUMBLINE_FOR_EACH_ISA(QkvOp);

struct Shape {
  std::int64_t q_heads, kv_heads, head_dim, rotary_dim, block_size;
  bool bias, norm;
  Dtype cache;
};

// Bias, norm and rotary embedding of one head in double precision.
std::vector<double> ExpectedHead(const Shape& shape, const float* head, const float* bias, const float* norm,
                                 const float* cos_sin) {
  std::vector<double> x(shape.head_dim);
  double squares = 0;
  for (std::int64_t d = 0; d < shape.head_dim; ++d) {
    x[d] = double{head[d]} + (shape.bias ? bias[d] : 0.0f);
    squares += x[d] * x[d];
  }
  if (shape.norm && norm != nullptr) {
    for (std::int64_t d = 0; d < shape.head_dim; ++d) {
      x[d] = x[d] / std::sqrt(squares / static_cast<double>(shape.head_dim) + 1e-6) * norm[d];
    }
  }
  if (cos_sin == nullptr) return x;
  const std::int64_t half = shape.rotary_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double first = x[i];
    const double second = x[i + half];
    x[i] = first * cos_sin[i] - second * cos_sin[half + i];
    x[i + half] = second * cos_sin[i] + first * cos_sin[half + i];
  }
  return x;
}

float ReadCache(const std::vector<float>& wide, const std::vector<BFloat16>& narrow, Dtype dtype,
                std::int64_t i) {
  return dtype == Dtype::kFloat32 ? wide[i] : Widen(narrow[i]);
}

void CheckShape(const Kernels& kernels, const Shape& shape, std::uint32_t seed) {
  SCOPED_TRACE(testing::Message() << "head_dim " << shape.head_dim << " rotary " << shape.rotary_dim
                                  << " heads " << shape.q_heads << "/" << shape.kv_heads << " block "
                                  << shape.block_size);
  Random random(seed);
  const std::int64_t tokens = 9;
  const std::int64_t blocks = 4;
  const std::int64_t positions = 50;
  const std::int64_t width = (shape.q_heads + 2 * shape.kv_heads) * shape.head_dim;
  const std::int64_t stride = width + 5;
  std::vector<float> qkv = random.Values(tokens * stride);
  const std::vector<float> before = qkv;
  const std::vector<float> bias = random.Values(width);
  const std::vector<float> q_norm = random.Values(shape.head_dim);
  const std::vector<float> k_norm = random.Values(shape.head_dim);
  const std::vector<float> cos_sin = random.Values(positions * shape.rotary_dim);
  const KvCache shape_only{nullptr, nullptr, shape.cache, shape.block_size, shape.kv_heads, shape.head_dim};
  const std::int64_t elements = blocks * shape_only.BlockElements();
  constexpr float kUntouched = 77;
  std::vector<float> keys(elements, kUntouched);
  std::vector<float> values(elements, kUntouched);
  std::vector<BFloat16> narrow_keys(elements, Narrow(kUntouched));
  std::vector<BFloat16> narrow_values(elements, Narrow(kUntouched));
  std::vector<std::int32_t> at(tokens);
  std::vector<std::int64_t> slots(tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    at[t] = static_cast<std::int32_t>(random.Between(0, positions - 1));
    slots[t] = t == 4 ? -1 : (t * 7 + 3) % (blocks * shape.block_size);
  }
  const bool wide = shape.cache == Dtype::kFloat32;
  QkvArgs args{.tokens = tokens,
               .qkv = qkv.data(),
               .qkv_stride = stride,
               .q_heads = shape.q_heads,
               .bias = shape.bias ? bias.data() : nullptr,
               .q_norm = shape.norm ? q_norm.data() : nullptr,
               .k_norm = shape.norm ? k_norm.data() : nullptr,
               .norm_epsilon = 1e-6f,
               .cos_sin = cos_sin.data(),
               .rotary_dim = shape.rotary_dim,
               .positions = at.data(),
               .slots = slots.data(),
               .cache = shape_only};
  args.cache.keys = wide ? static_cast<void*>(keys.data()) : narrow_keys.data();
  args.cache.values = wide ? static_cast<void*>(values.data()) : narrow_values.data();
  RunSliced(kernels.qkv, args, 3);

  const double cache_tolerance = wide ? 4e-6 : 2e-2;
  std::int64_t written = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* row = before.data() + t * stride;
    const float* table = shape.rotary_dim > 0 ? cos_sin.data() + at[t] * shape.rotary_dim : nullptr;
    for (std::int64_t head = 0; head < shape.q_heads + 2 * shape.kv_heads; ++head) {
      const bool is_q = head < shape.q_heads;
      const bool is_v = head >= shape.q_heads + shape.kv_heads;
      const float* norm = is_v ? nullptr : (is_q ? q_norm.data() : k_norm.data());
      const std::vector<double> expected =
          ExpectedHead(shape, row + head * shape.head_dim, bias.data() + head * shape.head_dim, norm,
                       is_v ? nullptr : table);
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        if (is_q) {
          ASSERT_NEAR(qkv[t * stride + head * shape.head_dim + d], expected[d], 4e-6);
          continue;
        }
        if (slots[t] < 0) continue;
        const std::int64_t kv_head = (head - shape.q_heads) % shape.kv_heads;
        const std::int64_t block = slots[t] / shape.block_size;
        const std::int64_t offset = slots[t] % shape.block_size;
        const std::int64_t start = (block * shape.kv_heads + kv_head) * shape.head_dim * shape.block_size;
        const float stored =
            is_v ? ReadCache(values, narrow_values, shape.cache, start + offset * shape.head_dim + d)
                 : ReadCache(keys, narrow_keys, shape.cache, start + d * shape.block_size + offset);
        ASSERT_NEAR(stored, expected[d], cache_tolerance * std::max(1.0, std::abs(expected[d])));
        ++written;
      }
    }
    for (std::int64_t i = width; i < stride; ++i) EXPECT_EQ(qkv[t * stride + i], before[t * stride + i]);
  }
  std::int64_t changed = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    changed += ReadCache(keys, narrow_keys, shape.cache, i) != kUntouched;
    changed += ReadCache(values, narrow_values, shape.cache, i) != kUntouched;
  }
  EXPECT_EQ(changed, written) << "slots outside the batch were written";
}

TEST_P(QkvOp, MatchesDoublePrecisionOverShapes) {
  std::uint32_t seed = 1;
  for (std::int64_t head_dim : {16, 32, 64, 80, 96, 128, 256}) {
    for (std::int64_t block_size : {16, 32, 128}) {
      for (Dtype cache : {Dtype::kFloat32, Dtype::kBFloat16}) {
        ++seed;
        CheckShape(kernels(), {4, 2, head_dim, head_dim, block_size, seed % 2 == 0, seed % 3 == 0, cache},
                   seed);
      }
    }
  }
}

TEST_P(QkvOp, AnyRotaryDimension) {
  for (std::int64_t rotary_dim : {0, 2, 6, 16, 20, 34, 64}) {
    CheckShape(kernels(), {3, 1, 64, rotary_dim, 16, true, true, Dtype::kFloat32}, 100);
  }
}

}  // namespace
}  // namespace plumbline::cpu
