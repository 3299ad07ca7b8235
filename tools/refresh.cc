// `plumb refresh`: simulates golden cases again and leaves what differs beside them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "fixtures/golden_search.h"
#include "fixtures/structural_golden.h"
#include "tools/command.h"

namespace plumbline {
namespace {

struct Flags {
  std::string golden_dir = "golden";
  std::vector<std::string> names;
  bool all = false;
};

void Refresh(const StructuralCase& one, const std::string& golden_dir) {
  const Refreshed refreshed = RefreshStructural(one, golden_dir);
  if (refreshed.folder.empty()) {
    fmt::print("{}: unchanged\n", refreshed.name);
    return;
  }
  fmt::print("{}: {} ({})\n{}", refreshed.name, refreshed.is_new ? "new" : "changed", refreshed.folder,
             refreshed.drift);
  if (!refreshed.inputs.empty()) fmt::print("its inputs have changed\n");
  fmt::print("accept it: plumb accept {} --by NAME --why REASON\n", refreshed.name);
}

ExitCode Run(const Flags& flags) {
  if (flags.all == !flags.names.empty()) {
    ThrowBadInput({.field = "EXAMPLE", .problem = "name examples, or give --all"});
  }
  const std::vector<StructuralCase> cases = StructuralCases();
  std::string known;
  for (const StructuralCase& one : cases) known += (known.empty() ? "" : ", ") + StructuralName(one);
  std::vector<const StructuralCase*> chosen;
  if (flags.all) {
    for (const StructuralCase& one : cases) chosen.push_back(&one);
  }
  for (std::string name : flags.names) {
    if (name.starts_with("validate/")) name.erase(0, sizeof("validate/") - 1);
    const StructuralCase* found = nullptr;
    for (const StructuralCase& one : cases) {
      if (StructuralName(one) == name) found = &one;
    }
    if (found == nullptr) {
      ThrowBadInput({.field = "EXAMPLE",
                     .value = name,
                     .problem = "is not one that is simulated from generated inputs; recorded ones are taken "
                                "again with plumb golden import",
                     .accepted = known});
    }
    chosen.push_back(found);
  }
  for (const StructuralCase* one : chosen) Refresh(*one, flags.golden_dir);
  return ExitCode::kPass;
}

}  // namespace

Command AddRefreshCommand(CLI::App& plumb, Tools&) {
  CLI::App* app = plumb.add_subcommand("refresh", "Simulate golden cases again, beside the stored ones");
  auto flags = std::make_shared<Flags>();
  app->add_option("EXAMPLE", flags->names, "structural/<case>; as a failing example names it");
  app->add_flag("--all", flags->all, "Every one");
  app->add_option("--golden-dir", flags->golden_dir, "Where golden examples are kept");
  return {.app = app, .run = [flags] { return Run(*flags); }};
}

}  // namespace plumbline
