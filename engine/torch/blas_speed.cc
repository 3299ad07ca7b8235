#include "engine/torch/blas_speed.h"

#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <torch/version.h>
#include <algorithm>
#include <chrono>

namespace plumbline {
namespace {

constexpr std::int64_t kSize = 384;
constexpr int kTries = 4;
// The reference BLAS reaches 4 to 8 GF/s whatever the machine, a vectorised one above 40 on one core.
constexpr double kSlowGflops = 12;

std::string BlasName() {
  const std::string config = at::show_config();
  const std::string key = "BLAS_INFO=";
  const auto found = config.find(key);
  if (found == std::string::npos) return "unknown";
  const auto begin = found + key.size();
  return config.substr(begin, config.find_first_of(", \n", begin) - begin);
}

}  // namespace

BlasSpeed MeasureBlas() {
  BlasSpeed speed = {.torch_version = TORCH_VERSION, .blas = BlasName()};
  const at::Tensor a = at::ones({kSize, kSize});
  for (int i = 0; i < kTries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const at::Tensor c = at::mm(a, a);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    speed.gflops = std::max(speed.gflops, 2.0 * kSize * kSize * kSize / elapsed.count() * 1e-9);
  }
  speed.slow = speed.gflops < kSlowGflops;
  return speed;
}

}  // namespace plumbline
