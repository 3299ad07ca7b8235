#pragma once

#include <span>

namespace plumbline::cpu {

// The instruction sets that the kernels are compiled for, narrowest first. Which one runs is decided when the
// program runs, so one build serves every x86-64-v3 machine.
enum class Isa {
  kAvx2,        // AVX2 and FMA
  kAvx512,      // AVX-512 F, BW, CD, DQ, VL
  kAvx512Bf16,  // the above and AVX512-BF16 (dot products of bfloat16 pairs)
};

std::span<const Isa> AllIsas();

bool Supported(Isa isa);

// The widest that this CPU has. Throws Error(kEngineFailed) on a CPU without AVX2 and FMA.
Isa BestIsa();

const char* Name(Isa isa);  // "avx2", "avx512", "avx512-bf16"

}  // namespace plumbline::cpu
