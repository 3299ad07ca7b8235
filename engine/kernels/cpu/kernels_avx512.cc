#include "engine/kernels/cpu/kernels_table.h"
#include "engine/kernels/cpu/vec_avx512.h"

namespace plumbline::cpu {
namespace {

struct Avx512;
using Vec = VecAvx512<Avx512>;

}  // namespace

constinit const Kernels kKernelsAvx512 = KernelsOf<Vec, WidenedWeights<Vec>>(Isa::kAvx512);

}  // namespace plumbline::cpu
