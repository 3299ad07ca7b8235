#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"
#include "fixtures/run/example_file.h"

// Whatever is accepted prints to text that reads back to the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  Example example;
  try {
    example = ParseExample({reinterpret_cast<const char*>(data), size}, "example.json");
  } catch (const Error&) {
    return 0;
  }
  const std::string text = PrintExample(example);
  if (PrintExample(ParseExample(text, "again.json")) != text) std::abort();
  return 0;
}
