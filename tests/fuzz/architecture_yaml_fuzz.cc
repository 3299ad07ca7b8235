#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "fixtures/profile/architecture_file.h"

// Any bytes are an architecture or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    plumbline::ParseArchitectureFile(std::string(reinterpret_cast<const char*>(data), size), "fuzzed.yaml");
  } catch (const plumbline::Error&) {
  }
  return 0;
}
