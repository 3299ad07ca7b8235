#pragma once

#include <memory>

#include "engine/api/engine.h"
#include "engine/api/registry.h"
#include "engine/vllm/vllm_options.h"

namespace plumbline {

// Boots vLLM's AsyncLLM in a process of its own. The worker program lies beside this one.
//
// Times of a request are vLLM's own (CLOCK_MONOTONIC of the engine core), told when the request has finished;
// without token_times the tokens after the first are told together, at the last one's time. Throws
// Error(kBadInput) for an argument that this vLLM does not take, Error(kEngineFailed) when it does not start.
std::unique_ptr<Engine> BootVllm(const VllmOptions& options);

// Kind "vllm". Boot throws Error(kSkipped) where no interpreter has vllm.
void RegisterVllmEngine(EngineRegistry& registry);

}  // namespace plumbline
