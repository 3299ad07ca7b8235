#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "tools/command.h"
#include "tools/suggest.h"

namespace plumbline {
namespace {

constexpr const char* kDescription =
    "plumb: a regression suite for LLM serving.\n"
    "Boots a serving engine, replays recorded requests exactly, writes the run's artifacts, and judges them\n"
    "against the output of a simulator.";

std::string Footer() {
  std::string text = "Exit codes:\n";
  const std::vector<std::pair<ExitCode, const char*>> meanings = {
      {ExitCode::kPass, "pass"},
      {ExitCode::kBadInput, "bad usage, or an input file that cannot be used"},
      {ExitCode::kNothingSelected, "nothing selected: a filter that matches nothing"},
      {ExitCode::kRegressed, "regressed: a gated metric lies outside its tolerance"},
      {ExitCode::kInterrupted, "interrupted by a signal, or the output could not be written"},
      {ExitCode::kEngineFailed, "the engine did not start, died or hung"},
      {ExitCode::kInvalid,
       "invalid: the run cannot be compared, a golden is missing or stale, a comparison is undecided"},
      {ExitCode::kSkipped, "skipped: a device or an engine is absent"},
  };
  for (const auto& [code, meaning] : meanings) {
    const std::string number = std::to_string(static_cast<int>(code));
    text += std::string(4 - number.size(), ' ') + number + "  " + meaning + "\n";
  }
  return text +
         "Environment:\n"
         "  PLUMBLINE_ENGINE_PATH   folders with engine plug-ins, separated by colons\n"
         "  PLUMBLINE_GOLDEN_PATH   folders with more golden examples, separated by colons\n"
         "  PLUMBLINE_REQUIRE       needs (gpu,vllm,endpoint) whose absence fails instead of skipping\n"
         "  PLUMBLINE_PYTHON        the Python that has vLLM";
}

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* group : app.get_subcommands({})) {
    if (!group->get_name().empty()) continue;  // a command, not an option group
    for (std::string& name : FlagNames(*group)) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_name().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::string WithSuggestion(const std::string& problem, const std::string& word,
                           const std::vector<std::string>& known) {
  const std::string suggestion = Suggest(word, known);
  return problem + (suggestion.empty() ? "" : "; did you mean " + suggestion + "?");
}

// The first word of the command line that nobody took, explained. Empty when all were taken.
std::string ExplainUnknownWord(const CLI::App& plumb) {
  const CLI::App* app = &plumb;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  const std::vector<std::string> words = plumb.remaining(true);
  if (words.empty()) return "";
  const std::string word = words.front().substr(0, words.front().find('='));
  if (word.starts_with("-")) {
    const std::string where = app == &plumb ? "plumb" : "plumb " + app->get_name();
    return WithSuggestion(word + ": is not a flag of '" + where + "'", word, FlagNames(*app));
  }
  if (app == &plumb) {
    std::string known;
    for (const std::string& name : CommandNames(plumb)) known += (known.empty() ? "" : ", ") + name;
    return WithSuggestion(word + ": is not a command (known: " + known + ")", word, CommandNames(plumb));
  }
  return word + ": 'plumb " + app->get_name() + "' takes no such argument";
}

// The help of a command and of all commands below it, each under its whole name.
std::string Manual(const CLI::App& app, const std::string& name) {
  std::string text = app.help(name.substr(0, name.rfind(' ') == std::string::npos ? 0 : name.rfind(' ')));
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name().empty()) continue;  // an option group: its flags stand in the command's help
    const std::string whole = name + " " + command->get_name();
    text += "\n" + std::string(100, '-') + "\n" + Manual(*command, whole);
  }
  return text;
}

int Fail(ExitCode code, const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "plumb: %s\n", message.c_str());
  return static_cast<int>(code);
}

}  // namespace

void AddLogLevelFlag(CLI::App& command) {
  command
      .add_option_function<std::string>(
          "--log-level",
          [](const std::string& level) {
            spdlog::set_level(level == "WARNING" ? spdlog::level::warn
                              : level == "ERROR" ? spdlog::level::err
                              : level == "DEBUG" ? spdlog::level::debug
                                                 : spdlog::level::info);
          },
          "What is logged on stderr")
      ->check(CLI::IsMember({"DEBUG", "INFO", "WARNING", "ERROR"}))
      ->default_str("INFO");
}

int RunPlumb(const std::vector<std::string>& arguments, Tools& tools) {
  if (spdlog::get("plumb") == nullptr) {
    spdlog::set_default_logger(spdlog::stderr_color_mt("plumb"));
    spdlog::set_pattern("%H:%M:%S %^%l%$ %v");
  }
  spdlog::set_level(spdlog::level::info);
  CLI::App plumb(kDescription, "plumb");
  plumb.set_version_flag("--version", std::string("plumb ") + PLUMBLINE_VERSION);
  plumb.get_formatter()->column_width(38);
  plumb.option_defaults()->always_capture_default();
  std::vector<Command> commands;
  commands.push_back(AddRunCommand(plumb, tools));
  commands.push_back(AddWorkloadCommand(plumb));
  commands.push_back(AddValidateCommand(plumb, tools));
  commands.push_back(AddGoldenCommand(plumb, tools));
  commands.push_back(AddRefreshCommand(plumb, tools));
  commands.push_back(AddAcceptCommand(plumb, tools));
  commands.push_back(AddDoctorCommand(plumb, tools));
  commands.push_back(AddProfileCommand(plumb, tools));
  commands.push_back(AddSimulateCommand(plumb, tools));
  plumb.footer(Footer());  // after the commands, which would take it over
  plumb.require_subcommand(0, 1);

  // CLI11 takes them last first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    plumb.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const bool whole = plumb.get_subcommands().empty();
    std::fputs(whole ? Manual(plumb, "plumb").c_str() : plumb.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string unknown = ExplainUnknownWord(plumb);
    return Fail(ExitCode::kBadInput, unknown.empty() ? error.what() : unknown);
  } catch (const Error& error) {
    return Fail(error.code(), error.what());
  }

  const auto chosen = std::find_if(commands.begin(), commands.end(),
                                   [](const Command& command) { return command.app->parsed(); });
  if (chosen == commands.end()) {
    return Fail(ExitCode::kBadInput, "a command is missing; plumb --help lists them");
  }
  try {
    return static_cast<int>(chosen->run());
  } catch (const Error& error) {
    return Fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return Fail(ExitCode::kBadInput, "out of memory");
  }
}

}  // namespace plumbline
