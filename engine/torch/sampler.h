#pragma once

#include <cstdint>
#include <span>

#include "engine/api/request.h"

namespace plumbline {

// Draws output token number `output_index` of a request: softmax(logits / temperature), cut to the top_k most
// likely, then to the fewest whose probabilities reach top_p, the lowest id first among equals. temperature
// must be above 0. The draw depends on logits, parameters and output_index alone: not on the batch, and a
// request that was preempted draws the same again.
TokenId SampleToken(std::span<const float> logits, const SamplingParams& params, std::int64_t output_index);

}  // namespace plumbline
