#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/api/engine.h"
#include "engine/simulated/cluster.h"
#include "engine/simulated/simulation.h"

namespace plumbline {

// A simulated cluster as an engine, in virtual time: what `plumb run` replays and what `plumb simulate` runs
// to the end are one simulation. Events carry no token ids, for nothing is sampled; a request's recorded
// answer is what the prefix cache hashes. Throws Error(kBadInput) for a cluster that contradicts itself.
std::unique_ptr<Engine> MakeSimulatedEngine(std::shared_ptr<const ClusterSpec> cluster,
                                            const SimulationOptions& options,
                                            std::optional<std::int64_t> max_model_len);

}  // namespace plumbline
