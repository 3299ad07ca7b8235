#pragma once

#include <optional>
#include <string>

namespace plumbline {

// The machine's BLAS: libblas.so.3, which Debian's libtorch uses.
struct BlasSpeed {
  std::string library;  // the file behind the link
  double gflops = 0;    // 1e9 float32 operations a second in a product of 768 x 768, the best of a few
};

// Absent when there is no such library. Takes up to 0.5 s.
std::optional<BlasSpeed> MeasureBlas();

}  // namespace plumbline
