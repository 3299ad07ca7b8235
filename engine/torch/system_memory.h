#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace plumbline {

// Memory as the operating system counts it; absent where it does not say.
struct SystemMemory {
  std::optional<std::int64_t> total_bytes;
  // What can be had without swapping, no more than the control group of this process allows.
  std::optional<std::int64_t> available_bytes;
};

SystemMemory ReadSystemMemory();

// The processor's name; empty where the operating system does not say.
std::string ReadCpuName();

}  // namespace plumbline
