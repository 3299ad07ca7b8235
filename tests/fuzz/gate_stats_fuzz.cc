#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "engine/base/error.h"
#include "fixtures/profile/gate_stats_file.h"
#include "tests/fuzz/bytes_as_file.h"

// Any bytes are the statistics of a gate or an Error; a curve stays within what the model has.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plumbline::BytesAsFile file(data, size);
  plumbline::ModelShape model;
  model.name = "tiny";
  model.num_experts = 8;
  model.experts_per_token = 2;
  try {
    const plumbline::GateCurve curve = plumbline::ReadGateStats(file.path(), model);
    for (const double tokens : {0.0, 1.0, 5.5, 1e12}) {
      const double experts = curve.At(tokens);
      if (!(experts >= 0 && experts <= 8)) std::abort();
    }
  } catch (const plumbline::Error&) {
  }
  return 0;
}
