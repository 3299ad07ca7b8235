#pragma once

#include "engine/api/facts.h"
#include "engine/torch/blas_speed.h"
#include "engine/torch/engine_settings.h"

namespace plumbline {

// What meta.json says of this engine: settings as resolved, machine, libraries, and warnings. The KV capacity
// and the scheduler's settings are filled in by the core.
Facts DescribeTorchEngine(const EngineSpec& spec, const ModelConfig& config, const EngineSettings& settings,
                          const BlasSpeed& blas);

}  // namespace plumbline
