#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "fixtures/run/sim_csv.h"
#include "tests/fuzz/bytes_as_file.h"

// Any bytes are read or refused with an Error; nothing else is thrown, read out of bounds or left running.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plumbline::BytesAsFile file(data, size);
  try {
    plumbline::SimRecord record;
    plumbline::ReadSimCsv(file.path(), {.keep_itl = true}, record);
  } catch (const plumbline::Error&) {
  }
  try {
    plumbline::SimRecord record;
    plumbline::ReadSimCsv(file.path(), {.keep_itl = false}, record);
  } catch (const plumbline::Error&) {
  }
  return 0;
}
