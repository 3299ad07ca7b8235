#pragma once

#include <memory>

#include "engine/api/engine.h"
#include "engine/api/registry.h"

namespace plumbline {

// Boots a Llama, Qwen2 or Qwen3 model on this machine's CPU. Throws Error(kBadInput) for a spec or a model
// folder that cannot be used, Error(kEngineFailed) where memory does not suffice.
std::unique_ptr<Engine> BootTorchEngine(const EngineSpec& spec);

void RegisterTorchEngine(EngineRegistry& registry);

}  // namespace plumbline
