#include "engine/torch/system_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace plumbline {
namespace {

// The text behind `key` and its colon in a file of "key : value" lines.
std::string ValueOf(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::optional<std::int64_t> Number(const std::string& text) {
  std::istringstream stream(text);
  std::int64_t value = 0;
  if (stream >> value) return value;
  return std::nullopt;
}

std::optional<std::int64_t> Kilobytes(const std::string& key) {
  const auto kilobytes = Number(ValueOf("/proc/meminfo", key));
  if (!kilobytes) return std::nullopt;
  return *kilobytes * 1024;
}

std::optional<std::int64_t> NumberIn(const char* path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return Number(text);
}

}  // namespace

SystemMemory ReadSystemMemory() {
  SystemMemory memory = {.total_bytes = Kilobytes("MemTotal"), .available_bytes = Kilobytes("MemAvailable")};
  const auto limit = NumberIn("/sys/fs/cgroup/memory.max");
  const auto used = NumberIn("/sys/fs/cgroup/memory.current");
  if (limit && used && memory.available_bytes) {
    memory.available_bytes = std::clamp<std::int64_t>(*limit - *used, 0, *memory.available_bytes);
  }
  return memory;
}

std::string ReadCpuName() {
  return ValueOf("/proc/cpuinfo", "model name");
}

}  // namespace plumbline
