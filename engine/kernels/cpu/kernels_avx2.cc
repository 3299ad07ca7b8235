#include "engine/kernels/cpu/kernels_table.h"
#include "engine/kernels/cpu/vec_avx2.h"

namespace plumbline::cpu {

constinit const Kernels kKernelsAvx2 = KernelsOf<VecAvx2, WidenedWeights<VecAvx2>>(Isa::kAvx2);

}  // namespace plumbline::cpu
