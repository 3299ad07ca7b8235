// `plumb profile`: this machine's cost tables, measured through an engine's own steps.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "engine/base/error.h"
#include "fixtures/profile/bundle_execution.h"
#include "fixtures/profile_host.h"
#include "fixtures/run/run_files.h"
#include "fixtures/stop_signals.h"
#include "tools/command.h"
#include "tools/engine_flags.h"
#include "tools/flag_checks.h"

namespace plumbline {
namespace {

struct Flags {
  std::unique_ptr<EngineFlags> engine;
  CLI::Option* load_format = nullptr;
  ProfileHostOptions profile;
  std::string import_execution;
};

// On a terminal a line that is written over, else a line every ten seconds.
class Progress {
 public:
  void Show(std::int64_t done, std::int64_t total) {
    const double elapsed_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    if (elapsed_s < next_s_) return;
    next_s_ = elapsed_s + (is_terminal_ ? 0.2 : 10);
    const double left_s = elapsed_s * static_cast<double>(total - done) / static_cast<double>(done);
    fmt::print(stderr, "{}{}/{} steps measured, {:.0f} s left{}", is_terminal_ ? "\r" : "", done, total,
               left_s, is_terminal_ ? "\x1b[K" : "\n");
    open_ = is_terminal_;
  }
  void Finish() {
    if (open_) fmt::print(stderr, "\n");
    open_ = false;
  }

 private:
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  const bool is_terminal_ = isatty(fileno(stderr)) != 0;
  bool open_ = false;
  double next_s_ = 0.5;
};

ExitCode Import(const Flags& flags) {
  const RunRecord run = ReadRun(flags.import_execution);
  ImportExecution(flags.profile.output, flags.import_execution, run.meta);
  fmt::print("execution of {} imported into {}; its timings are unchanged\n", flags.import_execution,
             flags.profile.output);
  return ExitCode::kPass;
}

ExitCode Profile(const Flags& flags, Tools& tools) {
  if (!flags.import_execution.empty()) return Import(flags);
  EngineSpec spec = flags.engine->Spec();
  if (spec.model.empty()) ThrowBadInput({.field = "--model", .problem = "is required"});
  // What a step takes does not depend on what the weights are.
  if (flags.load_format->empty()) spec.load_format = "dummy";
  const StopSignals signals;
  Progress progress;
  ProfileHostOptions options = flags.profile;
  options.measure.stop = signals.token();
  options.measure.on_progress = [&](std::int64_t done, std::int64_t total) { progress.Show(done, total); };
  const std::unique_ptr<Engine> engine = tools.engines.Boot(spec);
  for (const std::string& warning : engine->facts().warnings) spdlog::warn("{}", warning);
  StepCosts costs;
  try {
    costs = ProfileHost(*engine, spec, options);
  } catch (...) {
    progress.Finish();
    throw;
  }
  progress.Finish();
  fmt::print(
      "{} steps of different shape, {} passes, {:.1f} s, {:.0f} involuntary context switches a second\n",
      costs.prefills.size() + costs.decodes.size(), costs.passes, costs.wall_s,
      static_cast<double>(costs.involuntary_switches) / costs.wall_s);
  fmt::print("drift probe: prefill of {} {:.2f} ms, decode of {} {:.2f} ms\n",
             costs.drift_shape.prefill_tokens, costs.drift.prefill_s * 1e3, costs.drift_shape.decodes,
             costs.drift.decode_s * 1e3);
  fmt::print("bundle: {0} (plumb simulate --cluster-config {0}/cluster.json)\n", options.output);
  return ExitCode::kPass;
}

}  // namespace

Command AddProfileCommand(CLI::App& plumb, Tools& tools) {
  CLI::App* app = plumb.add_subcommand("profile", "Measure this machine's cost tables for the simulator");
  auto flags = std::make_shared<Flags>();
  flags->engine = std::make_unique<EngineFlags>(*app);
  app->get_option("--model")->required(false);
  flags->load_format = app->get_option("--load-format");
  flags->load_format->description("auto, or dummy for random weights (the default here)");
  CLI::Option_group& group = *app->add_option_group("Measuring and output");
  group
      .add_option("--output", flags->profile.output,
                  "Folder for the bundle: a new or an empty one; with --import-execution the bundle itself")
      ->required();
  group.add_option("--hardware", flags->profile.hardware,
                   "What the bundle calls this machine (default: the processor's name)");
  group.add_option("--passes", flags->profile.measure.passes, "How often every step is measured")
      ->check(AtLeast(1))
      ->capture_default_str();
  group.add_option("--import-execution", flags->import_execution,
                   "Measure nothing; attach what this run folder observed of its engine to the bundle");
  AddLogLevelFlag(group);
  return {app, [flags, &tools] { return Profile(*flags, tools); }};
}

}  // namespace plumbline
