#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "fixtures/run/requests_file.h"
#include "tests/fuzz/bytes_as_file.h"

// Any bytes are read or refused with an Error; nothing else is thrown, read out of bounds or left running.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plumbline::BytesAsFile file(data, size);
  try {
    std::vector<std::string> notes;
    for (const auto& request : plumbline::ReadRequests(file.path(), notes)) {
      plumbline::PrintRequest(request, true);
    }
  } catch (const plumbline::Error&) {
  }
  return 0;
}
