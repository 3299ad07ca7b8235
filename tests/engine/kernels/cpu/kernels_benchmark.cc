// Figures, not gates: the matrix products of one step of a 29M-parameter Llama (hidden 512, 8 layers, 8/4
// heads of 64, intermediate 1536, vocabulary 8192), all layers' weights in turn as a step reads them, and
// attention. Run with OMP_NUM_THREADS=2 (or as many as the machine has) and
// --benchmark_enable_random_interleaving=true.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/kernels/cpu/kernels.h"
#ifdef PLUMBLINE_HAVE_ONEDNN
#include <dnnl.hpp>
#endif

namespace plumbline::cpu {
namespace {

constexpr int kLayers = 8;
constexpr int kHidden = 512;

struct ProductShape {
  std::int64_t outputs;
  std::int64_t inputs;
};
constexpr ProductShape kLayerProducts[] = {
    {1024, kHidden}, {kHidden, kHidden}, {3072, kHidden}, {kHidden, 1536}};
constexpr std::int64_t kWidest = 3072;

std::vector<float> RandomValues(std::int64_t count, unsigned seed) {
  std::minstd_rand generator(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(generator() % 2001) / 1000.0f - 1.0f;
  return values;
}

std::int64_t StepParameters() {
  std::int64_t parameters = 0;
  for (const ProductShape& shape : kLayerProducts) parameters += kLayers * shape.outputs * shape.inputs;
  return parameters;
}

void Report(benchmark::State& state, std::int64_t rows, std::int64_t weight_bytes) {
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * static_cast<double>(rows * StepParameters()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
  state.counters["weights_GB/s"] = benchmark::Counter(1e-9 * static_cast<double>(weight_bytes),
                                                      benchmark::Counter::kIsIterationInvariantRate);
}

void StepProducts(benchmark::State& state, Isa isa, Dtype dtype) {
  const Kernels& kernels = KernelsFor(isa);
  const std::int64_t rows = state.range(0);
  std::vector<PackedWeight> weights;
  std::int64_t bytes = 0;
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const ProductShape& shape : kLayerProducts) {
      const std::vector<float> w = RandomValues(shape.outputs * shape.inputs, 7);
      const WeightRows part{w.data(), Dtype::kFloat32, shape.outputs, shape.inputs};
      bytes += weights.emplace_back(PackedWeight::Pack(dtype, {&part, 1}, shape.inputs)).bytes();
    }
  }
  const std::vector<float> x = RandomValues(rows * kWidest, 8);
  std::vector<float> y(static_cast<std::size_t>(rows * kWidest));
  for (auto _ : state) {
#pragma omp parallel
    for (const PackedWeight& weight : weights) {
      kernels.product({.rows = rows,
                       .x = x.data(),
                       .x_stride = weight.inputs(),
                       .weight = &weight,
                       .y = y.data(),
                       .y_stride = weight.outputs()},
                      omp_get_thread_num(), omp_get_num_threads());
#pragma omp barrier
    }
  }
  Report(state, rows, bytes);
}

#ifdef PLUMBLINE_HAVE_ONEDNN
// The same with oneDNN's matmul, weights in the layout that it asks for.
void StepProductsOneDnn(benchmark::State& state, dnnl::memory::data_type type) {
  using dnnl::memory;
  const std::int64_t rows = state.range(0);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  struct Product {
    dnnl::matmul primitive;
    std::unordered_map<int, memory> arguments;
  };
  std::vector<Product> products;
  std::int64_t bytes = 0;
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const ProductShape& shape : kLayerProducts) {
      const memory::desc plain({shape.inputs, shape.outputs}, memory::data_type::f32, memory::format_tag::ba);
      const memory::desc x_desc({rows, shape.inputs}, type, memory::format_tag::ab);
      const memory::desc y_desc({rows, shape.outputs}, memory::data_type::f32, memory::format_tag::ab);
      const memory::desc any({shape.inputs, shape.outputs}, type, memory::format_tag::any);
      const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(x_desc, any, y_desc), engine);
      std::vector<float> w = RandomValues(shape.outputs * shape.inputs, 7);
      memory source(plain, engine, w.data());
      memory packed(desc.weights_desc(), engine);
      dnnl::reorder(source, packed).execute(stream, source, packed);
      stream.wait();
      bytes += static_cast<std::int64_t>(desc.weights_desc().get_size());
      products.push_back({dnnl::matmul(desc),
                          {{DNNL_ARG_SRC, memory(x_desc, engine)},
                           {DNNL_ARG_WEIGHTS, packed},
                           {DNNL_ARG_DST, memory(y_desc, engine)}}});
    }
  }
  for (auto _ : state) {
    for (const Product& product : products) product.primitive.execute(stream, product.arguments);
    stream.wait();
  }
  Report(state, rows, bytes);
}
#endif

// All layers' attention of one step: `sequences` with `queries` each at the end of `context` tokens.
void StepAttention(benchmark::State& state, Isa isa, Dtype dtype) {
  const Kernels& kernels = KernelsFor(isa);
  const std::int64_t sequences = state.range(0);
  const std::int64_t queries = state.range(1);
  const std::int64_t context = state.range(2);
  constexpr std::int64_t q_heads = 8, kv_heads = 4, head_dim = 64, block_size = 16;
  const std::int64_t blocks = (context + block_size - 1) / block_size;
  const std::int64_t elements = sequences * blocks * kv_heads * head_dim * block_size;
  std::vector<std::int32_t> starts, contexts, tables;
  for (std::int64_t s = 0; s <= sequences; ++s) starts.push_back(static_cast<std::int32_t>(s * queries));
  contexts.assign(static_cast<std::size_t>(sequences), static_cast<std::int32_t>(context));
  for (std::int64_t b = 0; b < sequences * blocks; ++b) tables.push_back(static_cast<std::int32_t>(b));
  const std::vector<float> q = RandomValues(sequences * queries * q_heads * head_dim, 1);
  std::vector<float> out(q.size());
  // Zeros do: the time does not depend on the values.
  std::vector<std::vector<std::byte>> caches(
      2 * kLayers, std::vector<std::byte>(static_cast<std::size_t>(elements * SizeOf(dtype))));
  for (auto _ : state) {
#pragma omp parallel
    for (int layer = 0; layer < kLayers; ++layer) {
      const AttentionArgs args{.sequences = sequences,
                               .query_starts = starts.data(),
                               .context_lengths = contexts.data(),
                               .block_tables = tables.data(),
                               .block_table_stride = blocks,
                               .q = q.data(),
                               .q_stride = q_heads * head_dim,
                               .q_heads = q_heads,
                               .scale = 0.125f,
                               .cache = {caches[2 * layer].data(), caches[2 * layer + 1].data(), dtype,
                                         block_size, kv_heads, head_dim},
                               .out = out.data(),
                               .out_stride = q_heads * head_dim};
      kernels.attention(args, omp_get_thread_num(), omp_get_num_threads());
#pragma omp barrier
    }
  }
  const double seen = static_cast<double>(context) - 0.5 * static_cast<double>(queries - 1);
  state.counters["GFLOP/s"] = benchmark::Counter(
      1e-9 * 4 * kLayers * q_heads * head_dim * seen * static_cast<double>(sequences * queries),
      benchmark::Counter::kIsIterationInvariantRate);
  state.counters["cache_GB/s"] =
      benchmark::Counter(1e-9 * 2 * kLayers * static_cast<double>(elements * SizeOf(dtype)),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void RegisterAll() {
  for (Isa isa : AllIsas()) {
    if (!Supported(isa)) continue;
    for (Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
      const std::string kind = std::string(Name(isa)) + (dtype == Dtype::kFloat32 ? "/float32" : "/bfloat16");
      benchmark::RegisterBenchmark(("products/" + kind).c_str(), StepProducts, isa, dtype)
          ->ArgNames({"rows"})
          ->Arg(1)
          ->Arg(16)
          ->Arg(256)
          ->Arg(2048)
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(("attention/" + kind).c_str(), StepAttention, isa, dtype)
          ->ArgNames({"sequences", "queries", "context"})
          ->Args({16, 1, 160})
          ->Args({1, 1, 4096})
          ->Args({16, 128, 128})
          ->Args({1, 2048, 2048})
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
#ifdef PLUMBLINE_HAVE_ONEDNN
  for (const bool wide : {true, false}) {
    const auto type = wide ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
    if (!wide && !Supported(Isa::kAvx512)) continue;  // oneDNN has no bfloat16 below AVX-512
    benchmark::RegisterBenchmark(wide ? "products/onednn/float32" : "products/onednn/bfloat16",
                                 StepProductsOneDnn, type)
        ->ArgNames({"rows"})
        ->Arg(1)
        ->Arg(16)
        ->Arg(256)
        ->Arg(2048)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
#endif
}

}  // namespace
}  // namespace plumbline::cpu

int main(int argc, char** argv) {
  plumbline::cpu::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
