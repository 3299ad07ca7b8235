#include "engine/kernels/cpu/product_op.h"

#include <cmath>

#include "tests/engine/kernels/cpu/kernel_test.h"

namespace plumbline::cpu {
namespace {

class ProductOp : public KernelTest {
 protected:
  // AVX512-BF16 rounds x to bfloat16: the reference must do the same.
  bool RoundsX(Dtype weights) const { return GetParam() == Isa::kAvx512Bf16 && weights == Dtype::kBFloat16; }
};
PLUMBLINE_FOR_EACH_ISA(ProductOp);

struct Problem {
  Problem(std::int64_t of_rows, std::int64_t of_outputs, std::int64_t of_inputs, Dtype of_dtype,
          PackOrder order = PackOrder::kPlain, std::uint32_t seed = 1)
      : rows(of_rows), outputs(of_outputs), inputs(of_inputs), x_stride(of_inputs + 3), random(seed) {
    w = random.Values(outputs * inputs);
    if (of_dtype == Dtype::kBFloat16) w = WidenAll(NarrowAll(w));
    x = random.Values(rows * x_stride + 1);
    bias = random.Values(outputs);
    if (order == PackOrder::kPlain) {
      const WeightRows part{w.data(), Dtype::kFloat32, outputs, inputs};
      packed = PackedWeight::Pack(of_dtype, {&part, 1}, inputs);
    } else {
      const std::int64_t half = outputs / 2;
      const WeightRows parts[] = {{w.data(), Dtype::kFloat32, half, inputs},
                                  {w.data() + half * inputs, Dtype::kFloat32, half, inputs}};
      packed = PackedWeight::Pack(of_dtype, parts, inputs, order);
    }
  }

  ProductArgs Args(float* y, std::int64_t y_stride) const {
    return {.rows = rows,
            .x = x.data() + 1,
            .x_stride = x_stride,
            .weight = &packed,
            .y = y,
            .y_stride = y_stride};
  }

  double Expected(std::int64_t row, std::int64_t output, bool round_x) const {
    double sum = 0;
    for (std::int64_t k = 0; k < inputs; ++k) {
      const float value = x[1 + row * x_stride + k];
      sum += double{round_x ? Widen(Narrow(value)) : value} * w[output * inputs + k];
    }
    return sum;
  }

  double Tolerance() const { return 1e-6 * std::sqrt(static_cast<double>(inputs)) * 4; }

  std::int64_t rows, outputs, inputs, x_stride;
  Random random;
  std::vector<float> w, x, bias;
  PackedWeight packed;
};

constexpr Dtype kDtypes[] = {Dtype::kFloat32, Dtype::kBFloat16};

TEST_P(ProductOp, MatchesDoublePrecisionOverShapes) {
  for (Dtype dtype : kDtypes) {
    for (std::int64_t rows : {1, 2, 3, 5, 6, 7, 13, 14, 15, 16, 29, 100}) {
      for (std::int64_t outputs : {1, 15, 16, 17, 47, 100}) {
        for (std::int64_t inputs : {1, 2, 31, 64, 65}) {
          const Problem problem(rows, outputs, inputs, dtype);
          const std::int64_t stride = outputs + 2;
          std::vector<float> y(rows * stride, 9);
          RunSliced(kernels().product, problem.Args(y.data(), stride), 3);
          for (std::int64_t i = 0; i < rows * stride; ++i) {
            if (i % stride >= outputs) {
              ASSERT_EQ(y[i], 9) << "wrote between rows";
            } else {
              ASSERT_NEAR(y[i], problem.Expected(i / stride, i % stride, RoundsX(dtype)), problem.Tolerance())
                  << rows << "x" << outputs << "x" << inputs << " row " << i / stride << " output "
                  << i % stride;
            }
          }
        }
      }
    }
  }
}

TEST_P(ProductOp, BiasIsAddedAndAccumulateAddsToY) {
  for (Dtype dtype : kDtypes) {
    const Problem problem(9, 37, 50, dtype);
    std::vector<float> y(9 * 37, 2);
    ProductArgs args = problem.Args(y.data(), 37);
    args.bias = problem.bias.data();
    args.output = ProductOutput::kAccumulate;
    RunSliced(kernels().product, args, 2);
    for (std::int64_t i = 0; i < 9 * 37; ++i) {
      const double expected = 2 + problem.Expected(i / 37, i % 37, RoundsX(dtype)) + problem.bias[i % 37];
      ASSERT_NEAR(y[i], expected, problem.Tolerance());
    }
  }
}

TEST_P(ProductOp, GateUpWritesSiluOfGateTimesUp) {
  for (Dtype dtype : kDtypes) {
    for (std::int64_t width : {1, 7, 8, 9, 24, 41}) {
      for (std::int64_t rows : {1, 2, 5, 17}) {
        for (bool with_bias : {false, true}) {
          const Problem problem(rows, 2 * width, 40, dtype, PackOrder::kGateUp);
          std::vector<float> y(rows * (width + 1), 9);
          ProductArgs args = problem.Args(y.data(), width + 1);
          args.bias = with_bias ? problem.bias.data() : nullptr;
          args.output = ProductOutput::kSiluMul;
          RunSliced(kernels().product, args, 2);
          for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t n = 0; n < width; ++n) {
              const double gate =
                  problem.Expected(row, n, RoundsX(dtype)) + (with_bias ? problem.bias[n] : 0);
              const double up = problem.Expected(row, width + n, RoundsX(dtype)) +
                                (with_bias ? problem.bias[width + n] : 0);
              const double expected = gate / (1 + std::exp(-gate)) * up;
              ASSERT_NEAR(y[row * (width + 1) + n], expected, problem.Tolerance() * 8)
                  << width << " " << rows;
            }
            ASSERT_EQ(y[row * (width + 1) + width], 9) << "wrote between rows";
          }
        }
      }
    }
  }
}

TEST_P(ProductOp, RowsDoNotDependOnTheBatchOrOnThreads) {
  for (Dtype dtype : kDtypes) {
    const Problem problem(400, 83, 333, dtype);  // several row blocks
    std::vector<float> all(400 * 83);
    RunSliced(kernels().product, problem.Args(all.data(), 83), 1);
    for (std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 16, 64, 199}) {
      for (int threads : {1, 2, 7}) {
        const std::int64_t first = 400 - rows;
        std::vector<float> y(rows * 83);
        ProductArgs args = problem.Args(y.data(), 83);
        args.rows = rows;
        args.x += first * problem.x_stride;
        RunSliced(kernels().product, args, threads);
        for (std::int64_t i = 0; i < rows * 83; ++i)
          ASSERT_EQ(y[i], all[first * 83 + i]) << rows << " " << threads;
      }
    }
  }
}

TEST_P(ProductOp, ManyInputs) {
  for (Dtype dtype : kDtypes) {
    const Problem problem(9, 20, 40001, dtype);
    std::vector<float> y(9 * 20);
    RunSliced(kernels().product, problem.Args(y.data(), 20), 2);
    for (std::int64_t i = 0; i < 9 * 20; ++i) {
      ASSERT_NEAR(y[i], problem.Expected(i / 20, i % 20, RoundsX(dtype)), problem.Tolerance() * 4);
    }
  }
}

TEST_P(ProductOp, NoRowsAndNoOutputsTouchNothing) {
  const Problem problem(0, 20, 8, Dtype::kFloat32);
  RunSliced(kernels().product, problem.Args(nullptr, 20), 2);
  const PackedWeight none = PackedWeight::Pack(Dtype::kFloat32, {}, 8);
  ProductArgs args = problem.Args(nullptr, 20);
  args.rows = 3;
  args.weight = &none;
  RunSliced(kernels().product, args, 2);
}

// Float32 arithmetic is the same on every instruction set, so outputs of a run can be pinned by their hash.
TEST(Kernels, FloatResultsAreTheSameOnEveryInstructionSet) {
  const Problem problem(17, 60, 129, Dtype::kFloat32, PackOrder::kGateUp);
  std::vector<std::vector<float>> results;
  for (Isa isa : AllIsas()) {
    if (!Supported(isa)) continue;
    std::vector<float>& y = results.emplace_back(17 * 30);
    ProductArgs args = problem.Args(y.data(), 30);
    args.output = ProductOutput::kSiluMul;
    RunSliced(KernelsFor(isa).product, args, 2);
    std::vector<float> normed(17 * 30);
    RunSliced(KernelsFor(isa).rms_norm,
              {.rows = 17,
               .hidden = 30,
               .residual = y.data(),
               .weight = problem.bias.data(),
               .epsilon = 1e-5f,
               .out = normed.data()},
              2);
    y = normed;
    EXPECT_EQ(y, results.front()) << Name(isa);
  }
  if (results.size() < 2) GTEST_SKIP() << "this CPU has one instruction set only";
}

}  // namespace
}  // namespace plumbline::cpu
