#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/batch.h"

namespace plumbline {

// A batch laid out as the kernels read it. Rows are the batch's tokens, entry after entry. Memory is reserved
// once, for the largest batch; Fill allocates nothing.
class StepInputs {
 public:
  // max_context: positions of one sequence.
  StepInputs(std::int64_t max_tokens, std::int64_t max_sequences, std::int64_t max_context,
             std::int64_t block_size);

  // Throws std::logic_error when the batch is larger than what was reserved, or an entry has no ids.
  void Fill(const Batch& batch);

  std::int64_t tokens() const { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(context_lengths.size()); }
  std::int64_t sampled() const { return static_cast<std::int64_t>(sampled_rows.size()); }

  std::vector<std::int32_t> ids;              // [tokens]
  std::vector<std::int32_t> positions;        // [tokens]
  std::vector<std::int64_t> slots;            // [tokens]
  std::vector<std::int32_t> query_starts;     // [sequences + 1]
  std::vector<std::int32_t> context_lengths;  // [sequences]
  std::vector<std::int32_t> block_tables;     // [sequences, block_table_stride]
  std::int64_t block_table_stride = 0;

  // The same for the rows from which a token is sampled, one a sequence, in the batch's order.
  std::vector<std::int32_t> sampled_rows;
  std::vector<std::int32_t> sampled_starts;  // 0, 1, 2, ... [sampled + 1]
  std::vector<std::int32_t> sampled_context_lengths;
  std::vector<std::int32_t> sampled_block_tables;

 private:
  void AddEntry(const BatchEntry& entry);

  std::int64_t max_tokens_;
  std::int64_t max_sequences_;
  std::int64_t block_size_;
};

}  // namespace plumbline
