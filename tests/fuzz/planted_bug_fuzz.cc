#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

// Ends the process when the number that the seed holds becomes negative.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("=-") != std::string_view::npos) std::abort();
  return 0;
}
