#pragma once

#include <string>

#include "fixtures/serve_run.h"

namespace plumbline {

// What a finished run came to, for the terminal: TTFT, TPOT and latency (mean, P50, P90, P99), throughput,
// and what was not served.
std::string FormatRunTable(const ServedRun& run);

}  // namespace plumbline
