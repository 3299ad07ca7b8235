#include "engine/torch/shaped_batch.h"

#include <numeric>
#include <string>

#include "engine/base/error.h"

namespace plumbline {
namespace {

void RequireAtMost(const char* what, std::int64_t value, std::int64_t most) {
  if (value <= most) return;
  ThrowBadInput({.field = "step shape",
                 .value = std::to_string(value) + " " + what,
                 .problem = "is more than this engine takes in a step",
                 .accepted = "at most " + std::to_string(most)});
}

void RequireAtLeast(const char* what, std::int64_t value, std::int64_t least) {
  if (value >= least) return;
  ThrowBadInput({.field = "step shape",
                 .value = std::to_string(value) + " " + what,
                 .problem = "makes no step",
                 .accepted = "at least " + std::to_string(least)});
}

}  // namespace

ShapedBatch::ShapedBatch(const StepShape& shape, const BatchLimits& limits) {
  std::vector<Entry> entries;
  for (const PrefillShape& prefill : shape.prefills) {
    entries.push_back({.past = prefill.past, .tokens = prefill.tokens, .samples = prefill.sample});
  }
  for (const std::int64_t context : shape.decode_contexts) {
    entries.push_back({.past = context, .tokens = 1, .samples = true});
  }
  RequireAtLeast("requests", static_cast<std::int64_t>(entries.size()), 1);
  RequireAtMost("requests", static_cast<std::int64_t>(entries.size()), limits.max_sequences);
  std::int64_t tokens = 0;
  std::int64_t blocks = 0;
  for (const Entry& entry : entries) {
    RequireAtLeast("tokens of a request", entry.tokens, 1);
    RequireAtLeast("tokens before a request's", entry.past, 0);
    RequireAtMost("tokens", entry.tokens, limits.max_tokens);
    RequireAtMost("positions of a request", entry.past, limits.max_model_len);
    RequireAtMost("positions of a request", entry.past + entry.tokens, limits.max_model_len);
    tokens += entry.tokens;
    blocks += (entry.past + entry.tokens + limits.block_size - 1) / limits.block_size;
  }
  RequireAtMost("tokens", tokens, limits.max_tokens);
  RequireAtMost("KV blocks", blocks, limits.num_blocks);
  token_ids_.reserve(static_cast<std::size_t>(tokens));
  // Neighbouring tokens must not share lines of the embedding.
  constexpr std::int64_t kStride = 7919;
  for (std::int64_t i = 0; i < tokens; ++i) {
    token_ids_.push_back(static_cast<TokenId>(i * kStride % limits.vocab_size));
  }
  blocks_.resize(static_cast<std::size_t>(blocks));
  std::iota(blocks_.begin(), blocks_.end(), 0);
  for (const Entry& entry : entries) Add(entry, limits.block_size);
}

void ShapedBatch::Add(const Entry& entry, std::int64_t block_size) {
  const std::int64_t end = entry.past + entry.tokens;
  const std::int64_t num_blocks = (end + block_size - 1) / block_size;
  BatchEntry added;
  added.request_id = static_cast<RequestId>(batch_.entries.size());
  added.first_position = entry.past;
  added.num_tokens = static_cast<std::int32_t>(entry.tokens);
  added.samples = entry.samples;
  added.token_ids =
      std::span(token_ids_)
          .subspan(static_cast<std::size_t>(next_token_), static_cast<std::size_t>(entry.tokens));
  added.block_table =
      std::span(blocks_).subspan(static_cast<std::size_t>(next_block_), static_cast<std::size_t>(num_blocks));
  const auto first_written = static_cast<std::size_t>(entry.past / block_size);
  written_blocks_.insert(written_blocks_.end(),
                         added.block_table.begin() + static_cast<std::ptrdiff_t>(first_written),
                         added.block_table.end());
  batch_.entries.push_back(added);
  batch_.total_tokens += entry.tokens;
  next_token_ += entry.tokens;
  next_block_ += num_blocks;
}

}  // namespace plumbline
