#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plumbline {

// KV cache of one data-parallel rank, as the engine itself reported it (meta.json, kv_cache.capacity, schema
// 1).
struct RankCapacity {
  std::int64_t data_parallel_rank = 0;
  std::int64_t num_gpu_blocks = 0;  // blocks in the scheduler's pool, whatever the device
  std::int64_t block_size = 0;      // tokens
  std::optional<std::int64_t> kv_cache_size_tokens{};
  std::int64_t tensor_parallel_size = 1;
  std::int64_t pipeline_parallel_size = 1;
  std::int64_t data_parallel_size = 1;
  std::int64_t world_size = 1;

  bool operator==(const RankCapacity&) const = default;
};

// Complete (one entry a rank) or unknown with a reason; never a guess.
struct KvCapacity {
  std::vector<RankCapacity> per_engine{};  // empty when unknown
  std::string unknown_reason{};            // empty when complete

  bool complete() const { return unknown_reason.empty() && !per_engine.empty(); }
  std::int64_t TotalBlocks() const {
    std::int64_t total = 0;
    for (const RankCapacity& rank : per_engine) total += rank.num_gpu_blocks;
    return total;
  }

  bool operator==(const KvCapacity&) const = default;
};

}  // namespace plumbline
