#pragma once

#include <chrono>
#include <string>

#include "engine/api/engine_spec.h"
#include "engine/base/json.h"

namespace plumbline {

// An EngineSpec in vLLM's words.
struct VllmOptions {
  std::string python;      // interpreter: --python, else PLUMBLINE_PYTHON, else python3
  Json engine_arguments;   // of AsyncEngineArgs, by its names
  std::string log_folder;  // for vLLM's own log; empty = a temporary file
  bool token_times = false;
  std::chrono::seconds boot_timeout{900};
};

// Throws Error(kBadInput) for a value of one of our own keys that cannot be used. Keys of --engine-arg that
// are not ours become arguments of vLLM (dashes read as underscores, values as JSON where they are JSON); the
// worker refuses those that its vLLM does not have.
VllmOptions ParseVllmSpec(const EngineSpec& spec);

// What python there is to serve with. Throws Error(kSkipped), saying how to get it, when the interpreter is
// not there or has no vllm. Starts the interpreter, and does not import vllm.
void RequireVllm(const std::string& python);

}  // namespace plumbline
