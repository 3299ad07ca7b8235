#include "engine/kernels/cpu/isa.h"

#include "engine/base/error.h"

namespace plumbline::cpu {
namespace {

constexpr Isa kAll[] = {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16};

}  // namespace

std::span<const Isa> AllIsas() {
  return kAll;
}

// The compiler's checks include the operating system's support for the wider registers.
bool Supported(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi2");
    case Isa::kAvx512:
      return Supported(Isa::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case Isa::kAvx512Bf16:
      return Supported(Isa::kAvx512) && __builtin_cpu_supports("avx512vnni") &&
             __builtin_cpu_supports("avx512bf16");
  }
  return false;
}

Isa BestIsa() {
  for (auto isa = std::rbegin(kAll); isa != std::rend(kAll); ++isa) {
    if (Supported(*isa)) return *isa;
  }
  throw Error(ExitCode::kEngineFailed, "the CPU kernels need a processor with AVX2 and FMA (x86-64-v3)");
}

const char* Name(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512-bf16";
  }
  return "unknown";
}

}  // namespace plumbline::cpu
