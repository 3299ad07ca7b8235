// `plumb simulate`: the reference simulator's command line over the built-in simulator.
#include <fmt/format.h>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/files.h"
#include "fixtures/profile/cluster_file.h"
#include "fixtures/profile/simulation_output.h"
#include "fixtures/profile/simulation_workload.h"
#include "fixtures/stop_signals.h"
#include "tools/command.h"

namespace plumbline {
namespace {

struct Flags {
  std::string cluster_config;
  std::string dataset;
  std::string output;
  std::string log;
  std::string root;
  std::string run_id;
  std::int64_t num_reqs = 0;
  double log_interval_s = 1.0;
  std::string routing = "LOAD";
  std::string prefix_storage = "None";
  bool prefix_sharing = false;
  bool block_copy = true;  // how the reference builds its graphs: changes nothing
  bool skip_prefill = false;
  bool local_offloading = false;
  ClusterSettings settings;
  std::string dtype;
};

// What the reference has flags for, and what is not simulated here: refused by name, never passed over.
void RefuseWhatIsNotSimulated(const Flags& flags) {
  const auto refuse = [](bool given, const std::string& flag, const std::string& value = "") {
    if (!given) return;
    ThrowBadInput({.field = flag, .value = value, .problem = "is not simulated"});
  };
  refuse(flags.skip_prefill, "--skip-prefill");
  refuse(flags.local_offloading, "--enable-local-offloading");
  // The reference has the name for a policy of the user's own, and none behind it.
  refuse(flags.routing == "CUSTOM", "--request-routing-policy", flags.routing);
  // Then each layer draws its own lots; here all layers are alike.
  refuse(flags.settings.expert_routing == "RAND" && !flags.block_copy, "--no-enable-block-copy");
  if (!flags.settings.gate_stats.empty() && flags.settings.expert_routing != "CUSTOM") {
    ThrowBadInput({.field = "--gate-stats",
                   .value = flags.settings.gate_stats,
                   .problem = "is only read by --expert-routing-policy CUSTOM"});
  }
}

// sim.log's lines, to stdout or to a file that is there when the simulation has ended.
class LogTarget {
 public:
  explicit LogTarget(std::string path) : path_(std::move(path)) {}
  void Write(const std::string& text) {
    if (path_.empty()) {
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      text_ += text;
    }
  }
  void Close() {
    if (!path_.empty()) return WriteFileAtomically(path_, text_);
    if (std::fflush(stdout) != 0) throw Error(ExitCode::kInterrupted, "stdout: cannot be written");
  }

 private:
  std::string path_;
  std::string text_;
};

std::string Describe(const Flags& flags) {
  const ClusterSettings& settings = flags.settings;
  const auto on = [](bool enabled) { return enabled ? "ENABLED" : "DISABLED"; };
  std::string text;
  const auto line = [&](const char* label, const std::string& value) {
    text += fmt::format("  • {:<27}: {}\n", label, value);
  };
  line("Cluster config", flags.cluster_config);
  if (!flags.run_id.empty()) line("Run ID", flags.run_id);
  line("Dataset", flags.dataset);
  line("Max num seqs", std::to_string(settings.max_num_seqs));
  line("Max batched tokens", std::to_string(settings.max_num_batched_tokens));
  line("Block size (tokens)", std::to_string(settings.block_size));
  line("Request routing", flags.routing);
  line("Expert routing", settings.expert_routing);
  line("Prefix caching", on(settings.enable_prefix_caching));
  line("Chunked prefill", on(settings.enable_chunked_prefill));
  line("Log interval (s)", fmt::format("{:.1f}", flags.log_interval_s));
  return text;
}

SimulationOptions OptionsOf(const Flags& flags) {
  SimulationOptions options;
  if (flags.routing == "RR") options.routing = RequestRouting::kRoundRobin;
  if (flags.routing == "RAND") options.routing = RequestRouting::kRandom;
  options.log_interval_ns = static_cast<TimeNs>(flags.log_interval_s * 1e9);
  if (flags.prefix_storage == "CPU") options.prefix_storage = PrefixStorage::kCpu;
  if (flags.prefix_storage == "CXL") options.prefix_storage = PrefixStorage::kCxl;
  options.prefix_sharing = flags.prefix_sharing;
  return options;
}

// On a terminal a line that is written over, else a line every ten seconds.
class Progress {
 public:
  explicit Progress(std::int64_t total) : total_(total), is_terminal_(isatty(fileno(stderr)) != 0) {}

  void Show(std::int64_t done, TimeNs simulated_ns) {
    const double elapsed_s = ElapsedS();
    if (elapsed_s < next_s_) return;
    next_s_ = elapsed_s + (is_terminal_ ? 0.2 : 10);
    std::string left = "?";
    if (done > 0) {
      left =
          fmt::format("{:.0f}", elapsed_s * static_cast<double>(total_ - done) / static_cast<double>(done));
    }
    fmt::print(stderr, "{}{}/{} requests, {:.1f} s simulated, {} s left{}", is_terminal_ ? "\r" : "", done,
               total_, static_cast<double>(simulated_ns) / 1e9, left, is_terminal_ ? "\x1b[K" : "\n");
    open_ = is_terminal_;
  }
  void Finish() {
    if (open_) fmt::print(stderr, "\n");
    open_ = false;
  }
  double ElapsedS() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }

 private:
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  const std::int64_t total_;
  const bool is_terminal_;
  bool open_ = false;
  double next_s_ = 0.5;
};

// Turns between two looks at the clock and at the stop signals.
constexpr int kTurnsAtOnce = 1024;

void RunToTheEnd(ClusterSimulation& simulation, const SimulationOutput& output, Progress& progress) {
  const StopSignals signals;
  for (bool goes_on = true; goes_on;) {
    for (int turn = 0; goes_on && turn < kTurnsAtOnce; ++turn) goes_on = simulation.Turn();
    progress.Show(output.rows(), simulation.now());
    if (signals.token().stop_requested()) {
      throw Error(ExitCode::kInterrupted, "interrupted; nothing was written");
    }
  }
  progress.Finish();
}

ExitCode Simulate(Flags& flags) {
  RefuseWhatIsNotSimulated(flags);
  if (!flags.dtype.empty()) flags.settings.dtype = flags.dtype;
  const SimulatorRoots roots = FindSimulatorRoots(flags.cluster_config, flags.root);
  const LoadedCluster loaded = ReadClusterFile(flags.cluster_config, roots, flags.settings);
  std::vector<SimulationRequest> requests = MakeSimulationRequests(
      LoadWorkload(flags.dataset,
                   {.num_reqs = flags.num_reqs, .sessions = SessionRule::kKeep, .require_token_ids = false}));
  const SimulationOptions options = OptionsOf(flags);
  LogTarget log(flags.log);
  log.Write(Describe(flags));
  SimulationOutput output(loaded.spec, options, [&log](const std::string& text) { log.Write(text); });
  ClusterSimulation simulation(loaded.spec, options, output);
  for (const std::string& warning : loaded.warnings) log.Write("warning: " + warning + "\n");
  for (const std::string& warning : simulation.Warnings()) log.Write("warning: " + warning + "\n");
  Progress progress(static_cast<std::int64_t>(requests.size()));
  simulation.Add(std::move(requests));
  output.LogStart(simulation.plan());
  RunToTheEnd(simulation, output, progress);
  output.LogResults(simulation.Totals(), progress.ElapsedS());
  std::vector<std::string> unverified = loaded.unverified;
  for (std::string& what : simulation.Unverified()) unverified.push_back(std::move(what));
  for (const std::string& what : unverified) {
    log.Write("unverified: " + what + "; no stored output of the reference exercises it\n");
  }
  if (!flags.output.empty()) {
    log.Write("Saving each request's information to output file: " + flags.output + "\n");
    WriteFileAtomically(flags.output, output.TakeCsv());
  }
  log.Close();
  return ExitCode::kPass;
}

}  // namespace

Command AddSimulateCommand(CLI::App& plumb, Tools&) {
  CLI::App* app = plumb.add_subcommand("simulate", "Simulate a cluster serving a workload");
  auto flags = std::make_shared<Flags>();
  ClusterSettings& settings = flags->settings;
  app->add_option("--cluster-config", flags->cluster_config, "Cluster configuration (JSON)")->required();
  app->add_option("--dataset", flags->dataset, "Workload (JSONL)")->required();
  app->add_option("--output", flags->output, "Where the requests' figures go (sim.csv); none if left out");
  app->add_option("--log", flags->log, "Where the log goes (sim.log); stdout if left out");
  app->add_option(
      "--root", flags->root,
      "Folder with configs/model and profiler; found above the cluster configuration if left out");
  app->add_option("--run-id", flags->run_id, "A name for the log");
  app->add_option("--num-reqs", flags->num_reqs, "Lines of the workload to take; 0 = all")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--max-num-seqs", settings.max_num_seqs, "Running requests an instance");
  app->add_option("--max-num-batched-tokens", settings.max_num_batched_tokens, "Tokens a step");
  app->add_option("--long-prefill-token-threshold", settings.long_prefill_token_threshold,
                  "Most prompt tokens of one request a step; 0 = off");
  app->add_flag("--enable-chunked-prefill,!--no-enable-chunked-prefill", settings.enable_chunked_prefill,
                "Split prompts over steps");
  app->add_option("--npu-memory-utilization", settings.npu_memory_utilization,
                  "Share of device memory for weights and KV cache");
  app->add_flag("--reserve-full-isl,!--no-reserve-full-isl", settings.reserve_full_isl,
                "Admit a request only when its whole prompt fits");
  app->add_option("--block-size", settings.block_size, "Tokens a KV block");
  app->add_option("--request-routing-policy", flags->routing, "Which instance takes a request")
      ->check(CLI::IsMember({"LOAD", "RR", "RAND", "CUSTOM"}));
  app->add_option("--expert-routing-policy", settings.expert_routing, "Which experts take a token")
      ->check(CLI::IsMember({"BALANCED", "RR", "RAND", "CUSTOM"}));
  app->add_option("--dtype", flags->dtype, "Number format of weights; the model's own if left out");
  app->add_option("--kv-cache-dtype", settings.kv_cache_dtype, "Number format of the KV cache");
  app->add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", settings.enable_prefix_caching,
                "Reuse KV blocks of equal prefixes");
  app->add_option("--prefix-storage", flags->prefix_storage, "Where computed prefixes are kept, too")
      ->check(CLI::IsMember({"None", "CPU", "CXL"}));
  app->add_flag("--enable-prefix-sharing", flags->prefix_sharing, "Instances share that place");
  app->add_flag("--enable-block-copy,!--no-enable-block-copy", flags->block_copy,
                "Accepted; changes nothing here");
  app->add_flag("--skip-prefill", flags->skip_prefill, "Not simulated: an error");
  app->add_flag("--enable-local-offloading", flags->local_offloading, "Not simulated: an error");
  app->add_option("--gate-stats", settings.gate_stats,
                  "gate_stats.json of a run of the same model, for --expert-routing-policy CUSTOM");
  app->add_option("--log-interval", flags->log_interval_s, "Seconds between heartbeats")
      ->check(CLI::Range(1e-6, 1e6));
  AddLogLevelFlag(*app);
  return {.app = app, .run = [flags] { return Simulate(*flags); }};
}

}  // namespace plumbline
