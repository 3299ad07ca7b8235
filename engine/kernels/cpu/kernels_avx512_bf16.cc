#include "engine/kernels/cpu/dot_weights.h"
#include "engine/kernels/cpu/kernels_table.h"
#include "engine/kernels/cpu/vec_avx512.h"

namespace plumbline::cpu {
namespace {

struct Avx512Bf16;
using Vec = VecAvx512<Avx512Bf16>;

}  // namespace

constinit const Kernels kKernelsAvx512Bf16 = KernelsOf<Vec, DotWeights<Vec>>(Isa::kAvx512Bf16);

}  // namespace plumbline::cpu
