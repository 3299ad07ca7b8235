#include "tools/machine.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace plumbline {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The text after the colon of the first line that begins with `key`.
std::string ValueOf(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::vector<std::string> InstructionSets() {
  std::vector<std::string> sets;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) sets.push_back("avx2");
  if (__builtin_cpu_supports("fma")) sets.push_back("fma");
  if (__builtin_cpu_supports("avx512f")) sets.push_back("avx512f");
  if (__builtin_cpu_supports("avx512bf16")) sets.push_back("avx512_bf16");
#endif
  return sets;
}

}  // namespace

Machine ReadMachine() {
  Machine machine;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  machine.cores = sched_getaffinity(0, sizeof(mask), &mask) == 0
                      ? CPU_COUNT(&mask)
                      : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.cpu_name = ValueOf("/proc/cpuinfo", "model name");
  machine.instruction_sets = InstructionSets();
  machine.memory_bytes =
      static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  const std::string available = ValueOf("/proc/meminfo", "MemAvailable");
  if (!available.empty()) machine.memory_available_bytes = std::atoll(available.c_str()) * 1024;
  machine.governor = FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return machine;
}

std::optional<std::string> FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

std::optional<double> MeasureBlasGflops() {
  void* library = dlopen("libblas.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  // Fortran's calling convention: everything by address, matrices by column.
  using Product =
      void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
               const int*, const float*, const int*, const float*, float*, const int*);
  const auto product = reinterpret_cast<Product>(dlsym(library, "sgemm_"));
  if (product == nullptr) return std::nullopt;
  const int n = 768;
  const float one = 1;
  const float zero = 0;
  const std::vector<float> a(static_cast<std::size_t>(n) * n, 0.5F);
  const std::vector<float> b(a.size(), 0.25F);
  std::vector<float> c(a.size());
  double best_s = 0;
  for (int repeat = 0; repeat < 2; ++repeat) {  // the first one starts the library's threads
    const auto start = std::chrono::steady_clock::now();
    product("N", "N", &n, &n, &n, &one, a.data(), &n, b.data(), &n, &zero, c.data(), &n);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best_s = repeat == 0 ? seconds : std::min(best_s, seconds);
  }
  return 2.0 * n * n * n / best_s / 1e9;
}

}  // namespace plumbline
