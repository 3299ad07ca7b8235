#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "engine/simulated/fabric.h"

namespace plumbline {

// What a message is for at its sender.
constexpr std::int32_t kRingSend = 0;
constexpr std::int32_t kChainSend = 1;
constexpr std::int32_t kBackground = 2;

// Where one NPU stands.
struct Fabric::Npu {
  struct PendingWake {
    TimeNs time_ns;
    std::uint8_t wake;
    std::int32_t detail;
  };
  // One ring of a collective.
  struct Phase {
    Collective collective;
    std::int32_t dimension;
    std::int64_t bytes;
  };

  const Op& OpAt(std::int64_t index) const {
    const std::int64_t before = static_cast<std::int64_t>(program->before.size());
    if (index < before) return program->before[static_cast<std::size_t>(index)];
    index -= before;
    const std::int64_t block = static_cast<std::int64_t>(program->block.size());
    if (index < block * program->repeats) return program->block[static_cast<std::size_t>(index % block)];
    return program->after[static_cast<std::size_t>(index - block * program->repeats)];
  }

  std::shared_ptr<const Program> program;  // null = nothing to do
  std::deque<std::shared_ptr<const Program>> queued;
  std::int64_t next_op = 0;
  bool chain_ended = false;
  bool waiting_for_load = false;
  std::vector<bool> load_done;
  std::int64_t finished_programs = 0;

  std::vector<PendingWake> wakes;
  std::deque<std::pair<std::int32_t, std::int64_t>> background;  // (to, bytes); the first is on its way
  int parallel_parts = 0;                                        // of the op under way, not yet ended

  std::vector<Phase> phases;  // of the collective under way
  std::size_t phase = 0;
  bool in_collective = false;
  bool awaits_partner = false;  // in an all-reduce of two since `collective_began_ns`
  TimeNs collective_began_ns = 0;
  std::int64_t sends_left = 0;
  std::int64_t received = 0;
  std::int64_t members = 0;
  std::int64_t message_bytes = 0;
  TimeNs reduce_ns = 0;
};

}  // namespace plumbline
