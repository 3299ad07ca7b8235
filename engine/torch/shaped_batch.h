#pragma once

#include <vector>

#include "engine/api/step_probe.h"
#include "engine/core/batch.h"

namespace plumbline {

// The limits of one batch.
struct BatchLimits {
  std::int64_t max_tokens = 0;
  std::int64_t max_sequences = 0;
  std::int64_t max_model_len = 0;  // positions of a sequence
  std::int64_t block_size = 0;
  std::int64_t num_blocks = 0;
  std::int64_t vocab_size = 0;
};

// A batch of a given shape that belongs to no request: prefills first, then decodes, token ids spread over
// the vocabulary, every entry with KV blocks of its own.
class ShapedBatch {
 public:
  // Throws Error(kBadInput) naming what the shape exceeds.
  ShapedBatch(const StepShape& shape, const BatchLimits& limits);
  ShapedBatch(const ShapedBatch&) = delete;  // the batch's spans point into this object
  ShapedBatch& operator=(const ShapedBatch&) = delete;

  const Batch& batch() const { return batch_; }
  // The blocks that the step writes to, each once.
  const std::vector<BlockId>& written_blocks() const { return written_blocks_; }

 private:
  struct Entry {
    std::int64_t past;
    std::int64_t tokens;
    bool samples;
  };

  void Add(const Entry& entry, std::int64_t block_size);

  std::vector<TokenId> token_ids_;
  std::vector<BlockId> blocks_;
  std::int64_t next_token_ = 0;
  std::int64_t next_block_ = 0;
  Batch batch_;
  std::vector<BlockId> written_blocks_;
};

}  // namespace plumbline
