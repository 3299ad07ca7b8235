#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/api/facts.h"
#include "engine/api/request.h"

namespace plumbline {

// What an engine can serve, whatever its scheduler. Absent = no limit.
struct RequestLimits {
  RequestLimits() = default;
  explicit RequestLimits(const Facts& facts)
      : vocab_size(facts.vocab_size), max_model_len(facts.max_model_len) {}

  std::optional<std::int64_t> vocab_size;
  std::optional<std::int64_t> max_model_len;
};

// Why the request cannot be served, with the numbers; empty when it can: lengths that are no lengths, ids
// that are not input_toks many or outside the vocabulary, more than max_model_len.
std::string RefusalOf(const Request& request, const RequestLimits& limits);

}  // namespace plumbline
