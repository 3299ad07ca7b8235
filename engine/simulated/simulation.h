#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/api/request.h"
#include "engine/clock/clock.h"

namespace plumbline {

// A request of a simulated workload. Requests of a session have consecutive ids and follow each other; only
// the first has an arrival of its own, the next one comes `tool_duration_ns` after its predecessor's end.
struct SimulationRequest {
  RequestId id = 0;
  std::int64_t input_toks = 0;
  std::int64_t output_toks = 0;
  TimeNs arrival_ns = 0;
  std::vector<TokenId> token_ids;  // prompt, then answer; empty = not known, and not cached
  std::int64_t session = -1;       // -1 = none
  TimeNs tool_duration_ns = 0;
};

// kRandom: Python's lots with seed 42.
enum class RequestRouting : std::uint8_t { kLoad, kRoundRobin, kRandom };

enum class PrefixStorage : std::uint8_t { kNone, kCpu, kCxl };

struct SimulationOptions {
  RequestRouting routing = RequestRouting::kLoad;
  TimeNs log_interval_ns = kNsPerSecond;
  PrefixStorage prefix_storage = PrefixStorage::kNone;
  bool open_ended = false;      // more requests may come: never done
  bool prefix_sharing = false;  // one lower tier a node (CPU) or for all (CXL), instead of one an instance
};

// What became of a request: a row of sim.csv.
struct SimulatedRow {
  RequestId id = 0;
  std::int64_t input_toks = 0;
  std::int64_t output_toks = 0;
  TimeNs arrival_ns = 0;
  TimeNs end_ns = 0;
  TimeNs queuing_delay_ns = 0;
  TimeNs ttft_ns = 0;
  std::vector<TimeNs> itl_ns;

  TimeNs LatencyNs() const { return end_ns - arrival_ns; }
  TimeNs TpotNs() const { return output_toks == 1 ? 0 : (LatencyNs() - ttft_ns) / (output_toks - 1); }
};

// The cluster at one moment.
struct InstanceHeartbeat {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t used_bytes = 0;  // of one device: weights and KV blocks with known content
  std::int64_t prefix_requested_tokens = 0;
  std::int64_t prefix_hit_tokens = 0;
  bool prefix_counted = false;  // prefix caching is on and a request was counted
};
struct Heartbeat {
  TimeNs time_ns = 0;
  std::int64_t prompt_tokens = 0;  // since the last one
  std::int64_t generated_tokens = 0;
  std::vector<InstanceHeartbeat> instances;
};

struct SimulationTotals {
  TimeNs clocks_ns = 0;  // the last poll
  std::int64_t requests = 0;
  std::int64_t input_tokens = 0;
  std::int64_t prefill_work_tokens = 0;  // with prefix hits, and again what was recomputed
  std::int64_t generated_tokens = 0;
  std::int64_t preemptions = 0;
  std::int64_t recomputed_tokens = 0;
  std::int64_t prefix_requested_tokens = 0;
  std::int64_t prefix_hit_tokens = 0;       // on the devices
  std::int64_t prefix_recalled_tokens = 0;  // from lower tiers
  bool prefix_caching = false;              // on for any instance
};

}  // namespace plumbline
