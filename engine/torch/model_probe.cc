// ModelRunner as a StepProbe.
#include <chrono>
#include <cstring>
#include <vector>

#include "engine/torch/model_runner.h"
#include "engine/torch/shaped_batch.h"

namespace plumbline {
namespace {

// What lies in some blocks of all layers, put back at the end: a cached prefix may lie there.
class KeptBlocks {
 public:
  KeptBlocks(const std::vector<cpu::KvCache>& caches, const std::vector<BlockId>& blocks)
      : caches_(caches), blocks_(blocks) {
    bytes_ = caches.front().BlockElements() * cpu::SizeOf(caches.front().dtype);
    kept_.resize(2 * caches.size() * blocks.size() * static_cast<std::size_t>(bytes_));
    ForSides([this](std::byte* block, std::byte* kept) {
      std::memcpy(kept, block, static_cast<std::size_t>(bytes_));
    });
  }
  ~KeptBlocks() {
    ForSides([this](std::byte* block, const std::byte* kept) {
      std::memcpy(block, kept, static_cast<std::size_t>(bytes_));
    });
  }
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;

 private:
  template <typename Body>
  void ForSides(Body body) {
    std::byte* kept = kept_.data();
    for (const cpu::KvCache& cache : caches_) {
      for (void* side : {cache.keys, cache.values}) {
        for (const BlockId block : blocks_) {
          body(static_cast<std::byte*>(side) + block * bytes_, kept);
          kept += bytes_;
        }
      }
    }
  }

  const std::vector<cpu::KvCache>& caches_;
  const std::vector<BlockId>& blocks_;
  std::int64_t bytes_ = 0;
  std::vector<std::byte> kept_;
};

}  // namespace

TimeNs ModelRunner::RunStep(const StepShape& shape) {
  const ShapedBatch shaped(shape, {.max_tokens = sizes_.max_tokens,
                                   .max_sequences = sizes_.max_sequences,
                                   .max_model_len = sizes_.max_model_len,
                                   .block_size = sizes_.block_size,
                                   .num_blocks = sizes_.num_blocks,
                                   .vocab_size = config_.vocab_size});
  std::vector<TokenId> sampled(shaped.batch().entries.size());
  const StepTimes times_before = times_;
  const KeptBlocks kept(caches_, shaped.written_blocks());
  const auto start = std::chrono::steady_clock::now();
  Execute(shaped.batch(), sampled);
  const auto length = std::chrono::steady_clock::now() - start;
  times_ = times_before;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(length).count();
}

}  // namespace plumbline
