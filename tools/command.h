#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/api/registry.h"
#include "engine/base/exit_code.h"

namespace CLI {
class App;
}

namespace plumbline {

// What the subcommands share. Outlives every command.
struct Tools {
  EngineRegistry engines;  // kinds linked into the program, and the plug-in folders
};

// One subcommand of `plumb`. `run` is called once, after the whole command line was accepted; it prints its
// results on stdout and returns how the program ends. It throws Error for everything that goes wrong; the
// caller prints it as `plumb: <message>` on stderr.
struct Command {
  CLI::App* app = nullptr;
  std::function<ExitCode()> run;
};

// One file a subcommand, tools/<name>.cc. Each adds its CLI::App with all flags; the flag variables live in
// `run`'s closure.
Command AddRunCommand(CLI::App& plumb, Tools& tools);
Command AddDoctorCommand(CLI::App& plumb, Tools& tools);
Command AddProfileCommand(CLI::App& plumb, Tools& tools);
Command AddSimulateCommand(CLI::App& plumb, Tools& tools);
Command AddWorkloadCommand(CLI::App& plumb);
Command AddGoldenCommand(CLI::App& plumb, Tools& tools);
Command AddRefreshCommand(CLI::App& plumb, Tools& tools);
Command AddAcceptCommand(CLI::App& plumb, Tools& tools);
Command AddValidateCommand(CLI::App& plumb, Tools& tools);

// Adds --log-level (DEBUG, INFO, WARNING, ERROR; default INFO), which sets the level of what is logged on
// stderr.
void AddLogLevelFlag(CLI::App& command);

// Everything behind main: parses, runs one subcommand, prints errors. Does not touch process-wide state but
// the logger, so tests call it.
int RunPlumb(const std::vector<std::string>& arguments, Tools& tools);

}  // namespace plumbline
