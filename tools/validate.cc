#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/run/example_file.h"
#include "fixtures/validate_run.h"
#include "tools/command.h"

namespace plumbline {
namespace {

struct Flags {
  ValidateOptions options;
  std::string tolerances;
  std::string anchor = "auto";
  bool no_plots = false;
  bool report_only = false;
};

// A word that a shell takes as one argument.
std::string ShellWord(const std::string& word) {
  constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string Again(const Flags& flags) {
  std::string command = "plumb validate --bench-dir " + ShellWord(flags.options.bench_dir) + " --sim-csv " +
                        ShellWord(flags.options.sim_csv) + " --sim-log " + ShellWord(flags.options.sim_log);
  if (!flags.tolerances.empty()) command += " --tolerances " + ShellWord(flags.tolerances);
  if (flags.anchor != "auto") command += " --anchor " + flags.anchor;
  return command;
}

ExitCode Validate(Flags& flags) {
  ValidateOptions& options = flags.options;
  if (!flags.tolerances.empty()) options.judge.limits = ReadLimits(flags.tolerances);
  options.judge.anchor = ParseAnchor(flags.anchor);
  options.plots = !flags.no_plots;
  options.again = Again(flags);
  spdlog::debug("reading {} and {}", options.bench_dir, options.sim_csv);
  const Validation validation = ValidateRun(options);
  std::fputs(validation.summary.c_str(), stdout);
  std::printf("\nWritten:\n");
  for (const std::string& file : validation.files) std::printf("  %s\n", file.c_str());
  std::fflush(stdout);
  std::fputs(validation.failure.c_str(), stderr);
  const ExitCode code = ToExitCode(validation.judgement.verdict);
  return flags.report_only && code == ExitCode::kRegressed ? ExitCode::kPass : code;
}

}  // namespace

Command AddValidateCommand(CLI::App& plumb, Tools&) {
  CLI::App* app = plumb.add_subcommand("validate", "Judge a finished run against simulator output");
  auto flags = std::make_shared<Flags>();
  ValidateOptions& options = flags->options;
  app->add_option("--bench-dir", options.bench_dir, "Folder of a finished run")->required();
  app->add_option("--sim-csv", options.sim_csv, "The simulator's per-request CSV")->required();
  app->add_option("--sim-log", options.sim_log, "The simulator's log: its stdout, redirected")->required();
  app->add_option("--output-subdir", options.output_subdir, "Folder below --bench-dir for summary and plots");
  app->add_option("--prefix", options.prefix, "Begins the names of the written files")->default_str("\"\"");
  app->add_option("--title", options.title, "Title of the plots");
  app->add_option(
         "--tolerances", flags->tolerances,
         "JSON file with `tolerances`, or an example.json. Without it: the mean of TTFT, TPOT and latency "
         "within 5 %")
      ->default_str("");
  app->add_option("--anchor", flags->anchor,
                  "What TTFT and latency are counted from: auto, due, arrival, sent, queued");
  app->add_flag("--no-plots", flags->no_plots, "Write the summary only");
  app->add_flag("--report-only", flags->report_only, "End with 0 instead of 3 when a limit is breached");
  AddLogLevelFlag(*app);
  return {app, [flags] { return Validate(*flags); }};
}

}  // namespace plumbline
