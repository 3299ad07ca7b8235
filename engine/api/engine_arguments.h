#pragma once

#include "engine/api/engine_spec.h"
#include "engine/base/json.h"

namespace plumbline {

// A spec under the names of the reference harness and of vLLM's engine arguments, then ours; null = not asked
// for. Without `extra`.
Json EngineArguments(const EngineSpec& spec);

}  // namespace plumbline
