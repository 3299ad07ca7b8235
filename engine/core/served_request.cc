#include "engine/core/served_request.h"

#include <fmt/format.h>
#include <algorithm>

namespace plumbline {
namespace {

// The last output token is never put into the KV cache, so a request needs one place less than its length.
std::string NeverFits(const Request& request, const SchedulerConfig& config) {
  const std::int64_t places = request.input_toks + request.output_toks - 1;
  const std::int64_t blocks = (places + config.block_size - 1) / config.block_size;
  if (blocks > config.num_blocks) {
    return fmt::format(
        "{} prompt + {} output tokens can never fit: they need {} KV blocks of {} tokens, the cache has {}",
        request.input_toks, request.output_toks, blocks, config.block_size, config.num_blocks);
  }
  if (!config.enable_chunked_prefill && places > config.max_num_batched_tokens) {
    return fmt::format(
        "{} prompt + {} output tokens can never fit into one step of max_num_batched_tokens {}, and chunked "
        "prefill is off",
        request.input_toks, request.output_toks, config.max_num_batched_tokens);
  }
  return {};
}

}  // namespace

std::unique_ptr<ServedRequest> MakeServedRequest(Request request, EventSink& sink,
                                                 const RequestLimits& limits, const SchedulerConfig& config,
                                                 const SchedulingPolicy& policy) {
  auto served = std::make_unique<ServedRequest>();
  served->sink = &sink;
  served->refusal = RefusalOf(request, limits);
  if (served->refusal.empty()) served->refusal = NeverFits(request, config);
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
