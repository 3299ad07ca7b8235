#pragma once

#include "engine/kernels/cpu/kernels.h"

namespace plumbline::cpu {

// One a source, each compiled for its instruction set.
extern const Kernels kKernelsAvx2;
extern const Kernels kKernelsAvx512;
extern const Kernels kKernelsAvx512Bf16;

}  // namespace plumbline::cpu
