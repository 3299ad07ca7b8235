#include "engine/torch/step_inputs.h"

#include <stdexcept>
#include <utility>

namespace plumbline {

StepInputs::StepInputs(std::int64_t max_tokens, std::int64_t max_sequences, std::int64_t max_context,
                       std::int64_t block_size)
    : block_table_stride((max_context + block_size - 1) / block_size),
      max_tokens_(max_tokens),
      max_sequences_(max_sequences),
      block_size_(block_size) {
  const auto reserve = [](auto& list, std::int64_t size) { list.reserve(static_cast<std::size_t>(size)); };
  reserve(ids, max_tokens);
  reserve(positions, max_tokens);
  reserve(slots, max_tokens);
  reserve(query_starts, max_sequences + 1);
  reserve(context_lengths, max_sequences);
  reserve(block_tables, max_sequences * block_table_stride);
  reserve(sampled_rows, max_sequences);
  reserve(sampled_starts, max_sequences + 1);
  reserve(sampled_context_lengths, max_sequences);
  reserve(sampled_block_tables, max_sequences * block_table_stride);
}

void StepInputs::Fill(const Batch& batch) {
  for (auto* list : {&ids, &positions, &query_starts, &context_lengths, &block_tables, &sampled_rows,
                     &sampled_starts, &sampled_context_lengths, &sampled_block_tables}) {
    list->clear();
  }
  slots.clear();
  query_starts.push_back(0);
  sampled_starts.push_back(0);
  for (const BatchEntry& entry : batch.entries) AddEntry(entry);
}

void StepInputs::AddEntry(const BatchEntry& entry) {
  const std::int64_t end = entry.first_position + entry.num_tokens;
  if (std::cmp_not_equal(entry.token_ids.size(), entry.num_tokens)) {
    throw std::logic_error("a request without token ids cannot be computed");
  }
  if (tokens() + entry.num_tokens > max_tokens_ || sequences() == max_sequences_ ||
      std::cmp_greater(entry.block_table.size(), block_table_stride) ||
      std::cmp_less(entry.block_table.size() * static_cast<std::size_t>(block_size_), end)) {
    throw std::logic_error("a batch does not fit the sizes that the model runner was made for");
  }
  ids.insert(ids.end(), entry.token_ids.begin(), entry.token_ids.end());
  for (std::int64_t position = entry.first_position; position < end; ++position) {
    const std::int64_t block = entry.block_table[static_cast<std::size_t>(position / block_size_)];
    positions.push_back(static_cast<std::int32_t>(position));
    slots.push_back(block * block_size_ + position % block_size_);
  }
  const auto add_table = [&](std::vector<std::int32_t>& tables) {
    tables.insert(tables.end(), entry.block_table.begin(), entry.block_table.end());
    tables.resize(tables.size() + static_cast<std::size_t>(block_table_stride) - entry.block_table.size());
  };
  query_starts.push_back(static_cast<std::int32_t>(tokens()));
  context_lengths.push_back(static_cast<std::int32_t>(end));
  add_table(block_tables);
  if (!entry.samples) return;
  sampled_rows.push_back(static_cast<std::int32_t>(tokens()) - 1);
  sampled_starts.push_back(static_cast<std::int32_t>(sampled_rows.size()));
  sampled_context_lengths.push_back(static_cast<std::int32_t>(end));
  add_table(sampled_block_tables);
}

}  // namespace plumbline
