#pragma once

#include <cstdint>
#include <vector>

namespace plumbline {

enum class Collective : std::uint8_t { kAllReduce, kAllGather, kReduceScatter };

// Among whom a collective runs: the tensor-parallel or the expert-parallel dimensions of the instance.
enum class Scope : std::uint8_t { kTensor, kExpert };

enum class OpKind : std::uint8_t {
  kCompute,               // `amount` ns
  kMemory,                // `amount` bytes from or to memory device `peer`
  kSend,                  // `amount` bytes to NPU `peer`; ends when they have arrived
  kReceive,               // from NPU `peer`; ends when they have arrived
  kBackgroundSend,        // as kSend, but the chain goes on; one at a time, in order
  kCollective,            // of `amount` bytes
  kCollectiveAndCompute,  // both start together; `amount` bytes, `compute_ns`
};

// One thing that an NPU does; the next one starts when it ends.
struct Op {
  OpKind kind = OpKind::kCompute;
  Collective collective = Collective::kAllReduce;
  Scope scope = Scope::kTensor;
  std::int32_t peer = -1;
  std::int64_t amount = 0;
  std::int64_t compute_ns = 0;
  std::int32_t waits_for_load = -1;  // index into Program::loads: also has to have ended
};

// Bytes read from a memory device. All loads are issued when the program starts, behind its first op.
struct Load {
  std::int32_t device = 0;
  std::int64_t bytes = 0;
};

// What one NPU does in one iteration: `before`, then `block` as often as `repeats` says, then `after`; ended
// when all background sends have arrived, too.
struct Program {
  std::vector<Op> before;
  std::vector<Op> block;
  std::int64_t repeats = 0;
  std::vector<Op> after;
  std::vector<Load> loads;

  std::int64_t size() const {
    return static_cast<std::int64_t>(before.size() + after.size()) +
           repeats * static_cast<std::int64_t>(block.size());
  }
};

}  // namespace plumbline
