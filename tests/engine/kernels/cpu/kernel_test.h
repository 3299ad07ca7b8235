#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/kernels/cpu/kernels.h"

namespace plumbline::cpu {

// A test that runs for each instruction set; those that the CPU lacks are skipped by name.
class KernelTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!Supported(GetParam())) GTEST_SKIP() << "this CPU has no " << Name(GetParam());
    kernels_ = &KernelsFor(GetParam());
  }
  const Kernels& kernels() const { return *kernels_; }

 private:
  const Kernels* kernels_ = nullptr;
};

inline std::string IsaTestName(const testing::TestParamInfo<Isa>& info) {
  std::string name = Name(info.param);
  std::erase(name, '-');
  return name;
}

#define PLUMBLINE_FOR_EACH_ISA(suite) \
  INSTANTIATE_TEST_SUITE_P(Isa, suite, testing::ValuesIn(AllIsas().begin(), AllIsas().end()), IsaTestName)

// Slices run one after the other: an operation's slices may not depend on each other.
template <typename Args>
void RunSliced(void (*operation)(const Args&, int, int), const Args& args, int threads) {
  for (int thread = threads - 1; thread >= 0; --thread) operation(args, thread, threads);
}

// Seeded values; the same on every run.
class Random {
 public:
  explicit Random(std::uint32_t seed) : generator_(seed) {}
  float Value() { return std::uniform_real_distribution<float>(-1, 1)(generator_); }
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(generator_);
  }
  std::vector<float> Values(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = Value();
    return values;
  }

 private:
  std::mt19937 generator_;
};

inline std::vector<BFloat16> NarrowAll(const std::vector<float>& values) {
  std::vector<BFloat16> narrow;
  narrow.reserve(values.size());
  for (float value : values) narrow.push_back(Narrow(value));
  return narrow;
}

inline std::vector<float> WidenAll(const std::vector<BFloat16>& values) {
  std::vector<float> wide;
  wide.reserve(values.size());
  for (BFloat16 value : values) wide.push_back(Widen(value));
  return wide;
}

}  // namespace plumbline::cpu
