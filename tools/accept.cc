// `plumb accept`: what a refresh or an import left becomes the golden, and who said so is kept.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "fixtures/build_info.h"
#include "fixtures/golden_acceptance.h"
#include "fixtures/machine.h"
#include "tools/command.h"

namespace plumbline {
namespace {

struct Flags {
  std::string golden_dir = "golden";
  std::string name;
  std::string by;
  std::string why;
};

std::string NowUtc() {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

ExitCode Accept(const Flags& flags) {
  std::string name = flags.name;
  for (const std::string prefix : {"validate/", "stored/"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  const BuildInfo build = ReadBuildInfo();
  const Machine machine = ReadMachine();
  const bool simulated = name.starts_with("structural/");
  AcceptGolden(flags.golden_dir, name,
               {.by = flags.by,
                .when = NowUtc(),
                .why = flags.why,
                .commit = build.commit + (build.dirty ? " and changes" : ""),
                .machine = fmt::format("{}, {} cores", machine.cpu_name, machine.cores),
                .command = simulated ? "plumb refresh " + name : "plumb golden import",
                .figures = {}});
  fmt::print("{}: accepted\n", name);
  return ExitCode::kPass;
}

}  // namespace

Command AddAcceptCommand(CLI::App& plumb, Tools&) {
  CLI::App* app = plumb.add_subcommand("accept", "Make what refresh or import left the golden");
  auto flags = std::make_shared<Flags>();
  app->add_option("EXAMPLE", flags->name, "As refresh or import printed it")->required();
  app->add_option("--by", flags->by, "Who accepts it")->required();
  app->add_option("--why", flags->why, "Why the new figures are right, one sentence")->required();
  app->add_option("--golden-dir", flags->golden_dir, "Where golden examples are kept");
  return {.app = app, .run = [flags] { return Accept(*flags); }};
}

}  // namespace plumbline
