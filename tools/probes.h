#pragma once

#include <optional>
#include <string>

namespace plumbline {

// The full path of a program on PATH.
std::optional<std::string> FindProgram(const std::string& name);

// Speed of the machine's BLAS (libblas.so.3, which Debian's libtorch uses), in 1e9 float32 operations a
// second, measured with one product of 768 x 768. Absent when there is no such library. Takes up to 0.3 s.
std::optional<double> MeasureBlasGflops();

}  // namespace plumbline
