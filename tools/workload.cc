#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/error.h"
#include "engine/base/files.h"
#include "fixtures/workload/describe.h"
#include "fixtures/workload/generator.h"
#include "tools/command.h"

namespace plumbline {
namespace {

struct GenerateFlags {
  std::string output;
  std::string spec_file;
  GeneratorSpec spec;
  std::string arrivals = Name(ArrivalProcess::kPoisson);
  std::optional<std::int64_t> input_toks;  // a fixed length instead of spec.input
  std::optional<std::int64_t> output_toks;
};

struct DescribeFlags {
  std::string file;
  std::int64_t num_reqs = 0;
  bool for_replay = false;
  bool skip_sessions = false;
  std::optional<std::int64_t> vocab_size;
};

bool Exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

// A workload that runs were made with must not change under its name.
void WriteNewFile(const std::string& path, const std::string& bytes) {
  if (Exists(path) && ReadFile(path) != bytes) {
    ThrowBadInput({.field = "--output", .value = path, .problem = "exists and holds something else"});
  }
  WriteFileAtomically(path, bytes);
}

// The file says everything, so that its name alone tells what was generated.
void RefuseFlagsBesideSpec(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && name != "--spec" && name != "--output") {
      ThrowBadInput({.field = name, .problem = "cannot be given together with --spec"});
    }
  }
}

ExitCode RunGenerate(const CLI::App& command, const GenerateFlags& flags) {
  GeneratorSpec spec = flags.spec;
  if (!flags.spec_file.empty()) {
    RefuseFlagsBesideSpec(command);
    const Json json = ReadJsonFile(flags.spec_file);
    spec = ReadGeneratorSpec(JsonView(json, flags.spec_file));
  } else {
    spec.arrivals = ParseArrivalProcess(flags.arrivals);
    if (flags.input_toks) spec.input = FixedLength(*flags.input_toks);
    if (flags.output_toks) spec.output = FixedLength(*flags.output_toks);
  }
  const std::string bytes = GenerateWorkload(spec);
  WriteNewFile(flags.output, bytes);
  fmt::print("{}", DescribeWorkload(ParseWorkload(bytes, flags.output)));
  return ExitCode::kPass;
}

ExitCode RunDescribe(const DescribeFlags& flags) {
  WorkloadOptions options;
  options.num_reqs = flags.num_reqs;
  options.vocab_size = flags.vocab_size;
  options.require_token_ids = flags.for_replay;
  options.sessions = flags.skip_sessions ? SessionRule::kSkip : SessionRule::kKeep;
  fmt::print("{}", DescribeWorkload(LoadWorkload(flags.file, options)));
  return ExitCode::kPass;
}

void AddLengthFlags(CLI::App& command, const std::string& name, LengthSpec& length,
                    std::optional<std::int64_t>& fixed) {
  const std::string flag = "--" + name;
  CLI::Option* toks = command.add_option(flag + "-toks", fixed, "Every " + name + " so long");
  for (CLI::Option* option :
       {command.add_option(flag + "-median", length.median, "Otherwise log-normal: the median"),
        command.add_option(flag + "-sigma", length.sigma, "Standard deviation of the logarithm"),
        command.add_option(flag + "-min", length.min, "Shortest"),
        command.add_option(flag + "-max", length.max, "Longest")}) {
    option->excludes(toks);
  }
}

CLI::App* AddGenerate(CLI::App& workload, GenerateFlags& flags) {
  CLI::App* command = workload.add_subcommand(
      "generate", "Write a workload; the same flags give the same bytes on any machine");
  command->add_option("--num-reqs", flags.spec.num_requests, "Number of requests");
  command->add_option("--seed", flags.spec.seed, "Seed of lengths, arrivals and ids");
  command->add_option("--arrivals", flags.arrivals, "poisson, constant, or burst (all at once)");
  command->add_option("--rate", flags.spec.rate, "Requests per second, unless they come in a burst");
  AddLengthFlags(*command, "input", flags.spec.input, flags.input_toks);
  AddLengthFlags(*command, "output", flags.spec.output, flags.output_toks);
  command->add_option("--prefix-groups", flags.spec.prefix_groups, "Number of shared prefixes; 0 = none");
  command->add_option("--prefix-toks", flags.spec.prefix_toks, "Length of each, added to the input");
  command->add_option("--vocab-size", flags.spec.vocab_size, "Ids are drawn below it");
  command->add_option("--turns", flags.spec.turns,
                      "More than 1: every request is a session of so many turns");
  command->add_option("--turn-input-toks", flags.spec.turn_input_toks,
                      "New tokens a turn, behind the former prompt and its answer");
  command->add_option("--tool-ms", flags.spec.tool_ms, "From a turn's end to the next turn, milliseconds");
  command->add_option("--spec", flags.spec_file, "JSON file with all of these instead (names with _)");
  command->add_option("--output", flags.output, "File to write; one that exists must hold the same bytes")
      ->required();
  return command;
}

CLI::App* AddDescribe(CLI::App& workload, DescribeFlags& flags) {
  CLI::App* command = workload.add_subcommand("describe", "Check a workload and print its figures");
  command->add_option("file", flags.file, "Workload, in LLMServingSim's JSONL form")->required();
  command->add_option("--num-reqs", flags.num_reqs, "Only the first so many requests; 0 = all")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--vocab-size", flags.vocab_size, "Input ids must lie below it");
  command->add_flag("--for-replay", flags.for_replay, "Refuse what cannot be replayed: rows without ids");
  command->add_flag("--skip-sessions", flags.skip_sessions, "Leave sessions out");
  return command;
}

}  // namespace

Command AddWorkloadCommand(CLI::App& plumb) {
  struct Flags {
    GenerateFlags generate;
    DescribeFlags describe;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* workload = plumb.add_subcommand("workload", "Generate or check a workload");
  workload->require_subcommand(1);
  CLI::App* generate = AddGenerate(*workload, flags->generate);
  AddDescribe(*workload, flags->describe);
  return {workload, [flags, generate] {
            return generate->parsed() ? RunGenerate(*generate, flags->generate)
                                      : RunDescribe(flags->describe);
          }};
}

}  // namespace plumbline
