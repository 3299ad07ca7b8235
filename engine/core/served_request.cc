#include "engine/core/served_request.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>

namespace plumbline {
namespace {

std::string BadTokenId(const Request& request, const std::optional<std::int64_t>& vocab_size) {
  if (!vocab_size) return {};
  for (std::size_t i = 0; i < request.prompt_token_ids.size(); ++i) {
    const TokenId id = request.prompt_token_ids[i];
    if (id >= 0 && id < *vocab_size) continue;
    return fmt::format("token id {} at position {} of the prompt lies outside the vocabulary of {}", id, i,
                       *vocab_size);
  }
  return {};
}

// The last output token is never put into the KV cache, so a request needs one place less than its length.
std::string Refusal(const Request& request, const RequestLimits& limits, const SchedulerConfig& config) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (request.input_toks < 1 || request.output_toks < 1 || request.input_toks > kMost ||
      request.output_toks > kMost) {
    return fmt::format("{} prompt and {} output tokens: both must be 1 to {}", request.input_toks,
                       request.output_toks, kMost);
  }
  const std::int64_t total = request.input_toks + request.output_toks;
  if (!request.prompt_token_ids.empty() &&
      static_cast<std::int64_t>(request.prompt_token_ids.size()) != request.input_toks) {
    return fmt::format("the prompt has {} token ids but input_toks is {}", request.prompt_token_ids.size(),
                       request.input_toks);
  }
  if (limits.max_model_len && total > *limits.max_model_len) {
    return fmt::format("{} prompt + {} output tokens exceed max_model_len {}", request.input_toks,
                       request.output_toks, *limits.max_model_len);
  }
  const std::int64_t blocks = (total - 1 + config.block_size - 1) / config.block_size;
  if (blocks > config.num_blocks) {
    return fmt::format(
        "{} prompt + {} output tokens can never fit: they need {} KV blocks of {} tokens, the cache has {}",
        request.input_toks, request.output_toks, blocks, config.block_size, config.num_blocks);
  }
  if (!config.enable_chunked_prefill && total - 1 > config.max_num_batched_tokens) {
    return fmt::format(
        "{} prompt + {} output tokens can never fit into one step of max_num_batched_tokens {}, and chunked "
        "prefill is off",
        request.input_toks, request.output_toks, config.max_num_batched_tokens);
  }
  return BadTokenId(request, limits.vocab_size);
}

}  // namespace

std::unique_ptr<ServedRequest> MakeServedRequest(Request request, EventSink& sink,
                                                 const RequestLimits& limits, const SchedulerConfig& config,
                                                 const SchedulingPolicy& policy) {
  auto served = std::make_unique<ServedRequest>();
  served->sink = &sink;
  served->refusal = Refusal(request, limits, config);
  served->id = request.id;
  served->input_toks = request.input_toks;
  served->output_toks = request.output_toks;
  served->due_ns = request.due_ns;
  served->sampling = request.sampling;
  if (!served->refusal.empty()) return served;
  served->token_ids = std::move(request.prompt_token_ids);
  const std::size_t total = static_cast<std::size_t>(served->limit());
  const std::size_t blocks = total / static_cast<std::size_t>(config.block_size) + 1;
  if (!served->token_ids.empty()) {
    served->token_ids.reserve(total);
    if (policy.outputs_known_ahead) {
      const auto& recorded = request.recorded_output_token_ids;
      const auto known = std::min(recorded.size(), static_cast<std::size_t>(served->output_toks));
      served->token_ids.insert(served->token_ids.end(), recorded.begin(),
                               recorded.begin() + static_cast<std::ptrdiff_t>(known));
    }
    served->hash_chain.reserve(blocks);
  }
  served->blocks.reserve(blocks);
  return served;
}

}  // namespace plumbline
