#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/clock/clock.h"

namespace plumbline {

// The row of the workload, from 0. Unique within a run; also the key that pairs a run with its simulation.
using RequestId = std::int64_t;

using TokenId = std::int32_t;

struct SamplingParams {
  double temperature = 0;  // 0 = greedy
  std::int32_t top_k = 0;  // 0 = off
  double top_p = 1;        // 1 = off
  std::uint64_t seed = 0;
};

// One request with its exact lengths pinned: min_tokens = max_tokens = output_toks, EOS ignored.
struct Request {
  RequestId id = 0;
  std::int64_t input_toks = 0;
  std::int64_t output_toks = 0;
  // Length input_toks, or empty when the workload gives counts only; engines that compute need the ids.
  std::vector<TokenId> prompt_token_ids;
  // What the workload's recording answered, where it says so. The simulator's prefix cache hashes it; nobody
  // else may.
  std::vector<TokenId> recorded_output_token_ids;
  SamplingParams sampling;
  // When the workload wants it sent, on the engine's clock. An engine with a send loop of its own (an
  // endpoint) holds the request until then; an engine in this process takes it as due now.
  TimeNs due_ns = 0;
  std::string session_id;  // empty = no session
  std::int32_t turn = 0;
};

}  // namespace plumbline
