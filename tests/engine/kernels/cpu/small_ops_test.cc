#include "engine/kernels/cpu/small_ops.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/engine/kernels/cpu/kernel_test.h"

namespace plumbline::cpu {
namespace {

using testing::Each;
using testing::ElementsAre;

class SmallOps : public KernelTest {};
PLUMBLINE_FOR_EACH_ISA(SmallOps);

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Widths with every kind of tail.
constexpr std::int64_t kWidths[] = {1, 7, 8, 15, 16, 17, 33, 64, 100, 512};

TEST_P(SmallOps, EmbeddingCopiesRowsOfBothTypes) {
  Random random(1);
  for (std::int64_t hidden : kWidths) {
    const std::vector<float> table = random.Values(20 * hidden + 1);
    const std::vector<BFloat16> narrow = NarrowAll(table);
    const std::vector<std::int32_t> ids = {3, 19, 0, 3, 7};
    std::vector<float> out(5 * hidden + 1, 9);
    std::vector<float> from_narrow(5 * hidden + 1, 9);
    // One element off: no alignment is asked for.
    RunSliced(kernels().embedding, {ids.data(), 5, table.data() + 1, Dtype::kFloat32, hidden, out.data()}, 3);
    RunSliced(kernels().embedding,
              {ids.data(), 5, narrow.data() + 1, Dtype::kBFloat16, hidden, from_narrow.data()}, 2);
    for (std::int64_t i = 0; i < 5 * hidden; ++i) {
      const std::size_t source = ids[i / hidden] * hidden + i % hidden + 1;
      EXPECT_EQ(out[i], table[source]);
      EXPECT_EQ(from_narrow[i], Widen(narrow[source]));
    }
    EXPECT_EQ(out.back(), 9) << "wrote beyond the last row";
    EXPECT_EQ(from_narrow.back(), 9) << "wrote beyond the last row";
  }
}

TEST_P(SmallOps, RmsNormMatchesDoublePrecision) {
  Random random(2);
  for (std::int64_t hidden : kWidths) {
    const std::int64_t rows = 5;
    std::vector<float> residual = random.Values(rows * hidden);
    const std::vector<float> before = residual;
    const std::vector<float> delta = random.Values(rows * hidden);
    const std::vector<float> weight = random.Values(hidden);
    std::vector<float> out(rows * hidden + 1, 9);
    for (bool with_delta : {false, true}) {
      residual = before;
      RunSliced(kernels().rms_norm,
                {.rows = rows,
                 .hidden = hidden,
                 .residual = residual.data(),
                 .delta = with_delta ? delta.data() : nullptr,
                 .weight = weight.data(),
                 .epsilon = 1e-5f,
                 .out = out.data()},
                2);
      for (std::int64_t row = 0; row < rows; ++row) {
        double squares = 0;
        for (std::int64_t i = row * hidden; i < (row + 1) * hidden; ++i) {
          EXPECT_EQ(residual[i], with_delta ? before[i] + delta[i] : before[i]);
          squares += double{residual[i]} * residual[i];
        }
        const double inverse = 1 / std::sqrt(squares / static_cast<double>(hidden) + 1e-5);
        for (std::int64_t i = 0; i < hidden; ++i) {
          EXPECT_NEAR(out[row * hidden + i], residual[row * hidden + i] * inverse * weight[i], 2e-6);
        }
      }
      EXPECT_EQ(out.back(), 9) << "wrote beyond the last row";
    }
  }
}

TEST_P(SmallOps, SiluMulMatchesDoublePrecision) {
  Random random(3);
  for (std::int64_t width : kWidths) {
    std::vector<float> gate_up = random.Values(3 * 2 * width);
    for (float& value : gate_up) value *= 12;
    std::vector<float> out(3 * width + 1, 9);
    RunSliced(kernels().silu_mul, {3, width, gate_up.data(), out.data()}, 2);
    for (std::int64_t i = 0; i < 3 * width; ++i) {
      const double gate = gate_up[i / width * 2 * width + i % width];
      const double up = gate_up[i / width * 2 * width + width + i % width];
      const double expected = gate / (1 + std::exp(-gate)) * up;
      EXPECT_NEAR(out[i], expected, 1e-6 + 5e-7 * std::abs(expected));
    }
    EXPECT_EQ(out.back(), 9) << "wrote beyond the last row";
  }
}

TEST_P(SmallOps, SiluOfExtremesIsExactAndNanIsKept) {
  const std::vector<float> gate_up = {-1e30f, -100, 0, 100, 1e30f, kInfinity, kNan, -0.0f,
                                      1,      1,    1, 1,   1,     1,         1,    1};
  std::vector<float> out(8);
  RunSliced(kernels().silu_mul, {1, 8, gate_up.data(), out.data()}, 1);
  EXPECT_NEAR(out[0], 0, 1e-6);
  EXPECT_NEAR(out[1], 0, 1e-30);
  EXPECT_EQ(out[2], 0);
  EXPECT_EQ(out[3], 100);
  EXPECT_EQ(out[4], 1e30f);
  EXPECT_EQ(out[5], kInfinity);
  EXPECT_TRUE(std::isnan(out[6]));
  EXPECT_EQ(out[7], 0);
}

TEST_P(SmallOps, GatherRowsTakesRowsInTheGivenOrder) {
  Random random(4);
  for (std::int64_t width : kWidths) {
    const std::int64_t stride = width + 3;
    const std::vector<float> in = random.Values(6 * stride);
    const std::vector<std::int32_t> rows = {5, 0, 5, 2};
    std::vector<float> out(4 * width + 1, 9);
    RunSliced(kernels().gather_rows, {4, width, rows.data(), in.data(), stride, out.data()}, 3);
    for (std::int64_t i = 0; i < 4 * width; ++i) EXPECT_EQ(out[i], in[rows[i / width] * stride + i % width]);
    EXPECT_EQ(out.back(), 9) << "wrote beyond the last row";
  }
}

TEST_P(SmallOps, ArgMaxFindsTheFirstLargestAtEveryPlace) {
  for (std::int64_t width : kWidths) {
    for (std::int64_t place = 0; place < width; ++place) {
      std::vector<float> logits(width + 1, -3);
      logits[place] = 2;
      logits[width - 1] = 2;
      logits[width] = 7;  // not of this row
      std::int32_t found = -1;
      RunSliced(kernels().arg_max, {1, width, logits.data(), width + 1, &found}, 1);
      EXPECT_EQ(found, place);
    }
  }
}

TEST_P(SmallOps, ArgMaxPassesOverNan) {
  std::vector<float> logits(3 * 40, kNan);
  logits[17] = -5;
  std::fill(logits.begin() + 40, logits.begin() + 80, -kInfinity);
  logits[80] = kInfinity;
  std::vector<std::int32_t> found(3, -1);
  RunSliced(kernels().arg_max, {3, 40, logits.data(), 40, found.data()}, 2);
  EXPECT_THAT(found, ElementsAre(17, 0, 0));
}

TEST_P(SmallOps, EmptyBatchesTouchNothing) {
  RunSliced(kernels().embedding, {}, 2);
  RunSliced(kernels().rms_norm, {}, 2);
  RunSliced(kernels().silu_mul, {}, 2);
  RunSliced(kernels().gather_rows, {}, 2);
  RunSliced(kernels().arg_max, {}, 2);
  RunSliced(kernels().qkv, {.cache = {.block_size = 16, .kv_heads = 1, .head_dim = 16}}, 2);
  RunSliced(kernels().attention, {.q_heads = 1, .cache = {.block_size = 16, .kv_heads = 1, .head_dim = 16}},
            2);
}

}  // namespace
}  // namespace plumbline::cpu
