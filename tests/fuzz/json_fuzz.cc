#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/json.h"

// Whatever the bytes are: a value that prints again to text that parses, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Json value;
  try {
    value = ParseJson(text, "fuzz.json");
  } catch (const Error&) {
    return 0;
  }
  if (ParseJson(PrintJson(value), "again.json") != value) __builtin_trap();
  return 0;
}
