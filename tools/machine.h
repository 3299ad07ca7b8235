#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plumbline {

// What the operating system says of this machine. Absent = it does not say.
struct Machine {
  int cores = 0;  // that this process may use
  std::string cpu_name;
  std::vector<std::string> instruction_sets;  // of those that the kernels choose from
  std::int64_t memory_bytes = 0;
  std::optional<std::int64_t> memory_available_bytes;
  std::string governor;  // of the first core
};

Machine ReadMachine();

// The full path of a program on PATH.
std::optional<std::string> FindProgram(const std::string& name);

// Speed of the machine's BLAS (libblas.so.3, which Debian's libtorch uses), in 1e9 float32 operations a
// second, measured with one product of 768 x 768. Absent when there is no such library. Takes up to 0.3 s.
std::optional<double> MeasureBlasGflops();

}  // namespace plumbline
