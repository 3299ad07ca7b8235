#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "engine/base/error.h"
#include "fixtures/profile/profile_bundle.h"
#include "tests/fuzz/bytes_as_file.h"

// Any bytes are a table or an Error, and a table that was read can be looked up anywhere.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plumbline::BytesAsFile file(data, size);
  for (const char* kind : {"dense.csv", "per_sequence.csv", "attention.csv", "moe.csv"}) {
    plumbline::DegreeTables tables;
    try {
      plumbline::ReadProfileTable(file.path(), kind, tables);
    } catch (const plumbline::Error&) {
      continue;
    }
    for (const std::int64_t key : {0, 1, 100, 1 << 20}) {
      std::int64_t least = 1;
      for (const auto& [layer, table] : tables.dense) least = std::min(least, table.Lookup(key));
      for (const auto& [layer, table] : tables.per_sequence) least = std::min(least, table.Lookup(key));
      if (!tables.attention.empty()) least = std::min(least, tables.attention.Lookup(key, key, key, key));
      if (!tables.moe.empty()) least = std::min(least, tables.moe.Lookup(key, key));
      if (least < 1) throw std::logic_error("a lookup gave no time");
    }
  }
  return 0;
}
