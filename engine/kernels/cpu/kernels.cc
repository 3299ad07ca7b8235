#include "engine/kernels/cpu/kernels.h"

#include <string>

#include "engine/base/error.h"
#include "engine/kernels/cpu/attention_plan.h"
#include "engine/kernels/cpu/instances.h"

namespace plumbline::cpu {

const Kernels& KernelsFor(Isa isa) {
  if (!Supported(isa)) {
    throw Error(ExitCode::kEngineFailed, std::string("this CPU cannot run the ") + Name(isa) + " kernels");
  }
  switch (isa) {
    case Isa::kAvx2:
      return kKernelsAvx2;
    case Isa::kAvx512:
      return kKernelsAvx512;
    case Isa::kAvx512Bf16:
      return kKernelsAvx512Bf16;
  }
  throw Error(ExitCode::kEngineFailed, "unknown instruction set");
}

std::int64_t AttentionScratchFloats(int threads, std::int64_t max_context, std::int64_t q_heads,
                                    std::int64_t kv_heads, std::int64_t head_dim) {
  if (threads < 2 || max_context <= kPartTokens) return 0;
  const std::int64_t parts = (max_context + kPartTokens - 1) / kPartTokens;
  return 4 * threads * parts * PartFloats(q_heads / kv_heads, head_dim);  // AttentionPlan cuts fewer items
}

}  // namespace plumbline::cpu
