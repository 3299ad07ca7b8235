#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/error.h"
#include "fixtures/compare/result_file.h"

// Any bytes are results, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    plumbline::ParseResults({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  } catch (const plumbline::Error&) {
  }
  return 0;
}
