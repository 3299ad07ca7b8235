#include "engine/core/request_limits.h"

#include <fmt/format.h>
#include <limits>

namespace plumbline {

std::string RefusalOf(const Request& request, const RequestLimits& limits) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (request.input_toks < 1 || request.output_toks < 1 || request.input_toks > kMost ||
      request.output_toks > kMost) {
    return fmt::format("{} prompt and {} output tokens: both must be 1 to {}", request.input_toks,
                       request.output_toks, kMost);
  }
  if (!request.prompt_token_ids.empty() &&
      static_cast<std::int64_t>(request.prompt_token_ids.size()) != request.input_toks) {
    return fmt::format("the prompt has {} token ids but input_toks is {}", request.prompt_token_ids.size(),
                       request.input_toks);
  }
  if (limits.max_model_len && request.input_toks + request.output_toks > *limits.max_model_len) {
    return fmt::format("{} prompt + {} output tokens exceed max_model_len {}", request.input_toks,
                       request.output_toks, *limits.max_model_len);
  }
  if (!limits.vocab_size) return {};
  for (std::size_t i = 0; i < request.prompt_token_ids.size(); ++i) {
    const TokenId id = request.prompt_token_ids[i];
    if (id >= 0 && id < *limits.vocab_size) continue;
    return fmt::format("token id {} at position {} of the prompt lies outside the vocabulary of {}", id, i,
                       *limits.vocab_size);
  }
  return {};
}

}  // namespace plumbline
