#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "fixtures/golden_import.h"
#include "fixtures/golden_judge.h"
#include "fixtures/golden_search.h"
#include "fixtures/report/summary.h"
#include "tools/command.h"

namespace plumbline {
namespace {

struct Flags {
  std::string golden_dir = "golden";
  std::string source;
  std::string commit;
};

// The verdict of one case in a word and, where there is no judgement, the reason.
std::string Outcome(const GoldenCase& golden) {
  try {
    return Name(JudgeGolden(golden, "").judgement.verdict);
  } catch (const Error& error) {
    return std::string(Name(error.code())) + ": " + error.what();
  }
}

ExitCode List(const Flags& flags) {
  const std::vector<GoldenCase> cases = FindGoldens(flags.golden_dir);
  if (cases.empty()) {
    throw Error(ExitCode::kNothingSelected,
                flags.golden_dir + ": no golden example below it, and none in PLUMBLINE_GOLDEN_PATH");
  }
  for (const GoldenCase& golden : cases) fmt::print("{}\n  {}\n", golden.name, Outcome(golden));
  return ExitCode::kPass;
}

// Before and after, so that whoever accepts sees what moves.
void PrintChange(const std::string& golden_dir, const ImportedGolden& imported) {
  GoldenCase before;
  for (const GoldenCase& golden : FindStoredGoldens(golden_dir)) {
    if (golden.example.name == imported.name) before = golden;
  }
  GoldenCase after = before;
  after.example.folder = imported.folder;
  after.stored = false;
  after.run_folder = imported.folder + "/run";
  after.sim_csv = imported.folder + "/sim/sim.csv";
  after.sim_log = imported.folder + "/sim/sim.log";
  before.stored = false;  // its digests are not the question here
  for (const auto& [label, golden] : {std::pair("before", before), std::pair("after", after)}) {
    const GoldenResult result = JudgeGolden(golden, "");
    fmt::print("\n{} ({})\n{}", label, Name(result.judgement.verdict),
               FormatTable(result.judgement.rows, "vLLM", "Sim"));
  }
  fmt::print("\naccept it: plumb accept {} --by NAME --why REASON\n", imported.name);
}

ExitCode Import(const Flags& flags) {
  const std::vector<ImportedGolden> imported =
      ImportGoldens({.source_root = flags.source, .golden_root = flags.golden_dir, .commit = flags.commit});
  for (const ImportedGolden& golden : imported) {
    const char* state = golden.state == ImportState::kNew         ? "new"
                        : golden.state == ImportState::kUnchanged ? "unchanged"
                                                                  : "changed";
    fmt::print("{}: {} ({})\n", golden.name, state, golden.folder);
    if (golden.state == ImportState::kChanged) PrintChange(flags.golden_dir, golden);
  }
  return ExitCode::kPass;
}

}  // namespace

Command AddGoldenCommand(CLI::App& plumb, Tools&) {
  CLI::App* app = plumb.add_subcommand("golden", "List and import golden examples");
  app->require_subcommand(1);
  auto flags = std::make_shared<Flags>();
  app->add_option("--golden-dir", flags->golden_dir, "Where golden examples are kept");
  CLI::App* list = app->add_subcommand("list", "Every example with its verdict");
  CLI::App* import =
      app->add_subcommand("import", "Take the figures of a checkout of the reference simulator");
  import->add_option("SOURCE", flags->source, "The checkout: holds bench/examples/<hardware>/<model>/")
      ->required();
  import->add_option("--commit", flags->commit, "The checkout's commit, for the record")->required();
  return {app, [flags, list] {
            if (list->parsed()) return List(*flags);
            return Import(*flags);
          }};
}

}  // namespace plumbline
