#include "tools/probes.h"

#include <dlfcn.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace plumbline {

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
