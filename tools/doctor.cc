#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/machine.h"
#include "tools/command.h"
#include "tools/probes.h"

namespace plumbline {
namespace {

// One line of the report.
struct Finding {
  bool usable = true;
  std::string what;
  std::string detail;
  std::string remedy{};  // how to get it, or how to make it better
};

constexpr double kGib = 1024.0 * 1024 * 1024;
// Below this a float32 product is not done by an optimised library (the reference BLAS reaches 8).
constexpr double kSlowBlasGflops = 20;

Finding DescribeMemory(const Machine& machine) {
  std::string detail = fmt::format("{:.1f} GiB", static_cast<double>(machine.memory_bytes) / kGib);
  if (machine.memory_available_bytes) {
    detail += fmt::format(", {:.1f} GiB of it available",
                          static_cast<double>(*machine.memory_available_bytes) / kGib);
  }
  return {.what = "memory", .detail = detail};
}

Finding DescribeInstructionSets(const Machine& machine) {
  if (machine.instruction_sets.empty()) {
    return {.usable = false,
            .what = "instruction sets",
            .detail = "no AVX2",
            .remedy = "the CPU kernels need an x86-64-v3 machine"};
  }
  return {.what = "instruction sets", .detail = fmt::format("{}", fmt::join(machine.instruction_sets, ", "))};
}

Finding DescribeBlas() {
  const std::optional<double> gflops = MeasureBlasGflops();
  if (!gflops) {
    return {.usable = false,
            .what = "BLAS",
            .detail = "no libblas.so.3",
            .remedy = "apt-get install libopenblas0-openmp"};
  }
  Finding finding{.what = "BLAS", .detail = fmt::format("libblas.so.3: {:.0f} GF/s in float32", *gflops)};
  if (*gflops < kSlowBlasGflops) {
    finding.detail += ", which is the speed of the reference library";
    finding.remedy = "apt-get install libopenblas0-openmp";
  }
  return finding;
}

Finding DescribeTorchEngine(const EngineRegistry& engines) {
  const std::vector<std::string> kinds = engines.Kinds();
  if (std::find(kinds.begin(), kinds.end(), "torch") != kinds.end()) {
    return {.what = "engine torch", .detail = "its plug-in is present"};
  }
  return {.usable = false,
          .what = "engine torch",
          .detail = "this build has no libplumbline_torch.so",
          .remedy = "apt-get install libtorch-dev libdnnl-dev, then configure and build again"};
}

Finding DescribeGnuplot() {
  const std::optional<std::string> path = FindProgram("gnuplot");
  if (path) return {.what = "gnuplot", .detail = *path};
  return {.usable = false,
          .what = "gnuplot",
          .detail = "not on PATH: plots are left out",
          .remedy = "apt-get install gnuplot-nox"};
}

void Print(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    fmt::print("{:<8} {:<18} {}\n", finding.usable ? "ok" : "missing", finding.what, finding.detail);
    if (!finding.remedy.empty()) fmt::print("{:<8} {:<18} -> {}\n", "", "", finding.remedy);
  }
}

ExitCode Diagnose(const Tools& tools) {
  const Machine machine = ReadMachine();
  std::vector<Finding> findings;
  findings.push_back({.what = "cores", .detail = fmt::format("{} ({})", machine.cores, machine.cpu_name)});
  findings.push_back(DescribeMemory(machine));
  findings.push_back(DescribeInstructionSets(machine));
  findings.push_back(DescribeTorchEngine(tools.engines));
  findings.push_back(DescribeBlas());
  findings.push_back(DescribeGnuplot());
  Print(findings);
  return ExitCode::kPass;
}

}  // namespace

Command AddDoctorCommand(CLI::App& plumb, Tools& tools) {
  CLI::App* app =
      plumb.add_subcommand("doctor", "Say what this machine can run, what is missing, and how to get it");
  return {app, [&tools] { return Diagnose(tools); }};
}

}  // namespace plumbline
