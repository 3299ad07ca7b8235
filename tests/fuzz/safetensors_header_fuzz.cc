#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"
#include "engine/torch/checkpoint/safetensors.h"

// The first byte picks how much data lies behind the header; the rest is the header. Whatever is accepted
// must lie inside the data, tensor after tensor.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::int64_t data_bytes = data[0];
  const std::string_view header(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    std::int64_t covered = 0;
    for (const auto& entry : plumbline::ParseSafetensorsHeader(header, data_bytes, "fuzz")) {
      if (entry.begin != covered || entry.end < entry.begin || entry.end > data_bytes) std::abort();
      if (entry.Elements() > data_bytes) std::abort();
      covered = entry.end;
    }
    if (covered != data_bytes) std::abort();
  } catch (const plumbline::Error&) {
    // A refusal is a good answer.
  }
  return 0;
}
