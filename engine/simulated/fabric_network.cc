// Messages and ring collectives.

#include <algorithm>

#include "engine/simulated/fabric.h"
#include "engine/simulated/fabric_npu.h"

namespace plumbline {
namespace {

// Before a ring's first send and after each receive.
constexpr TimeNs kEndpointDelayNs = 10;

}  // namespace

TimeNs Fabric::MessageTime(std::int32_t from, std::int32_t to, std::int64_t bytes) const {
  for (std::size_t d = 0; d < spec_.dimensions.size(); ++d) {
    const NetworkDimension& dimension = spec_.dimensions[d];
    const std::int64_t mine = from / strides_[d] % dimension.size;
    const std::int64_t theirs = to / strides_[d] % dimension.size;
    if (mine == theirs) continue;
    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    const double bytes_per_ns = dimension.gib_per_s * kGiB / 1e9;
    return static_cast<TimeNs>(dimension.latency_ns + static_cast<double>(bytes) / bytes_per_ns);
  }
  return 0;
}

void Fabric::SendMessage(std::int32_t from, std::int32_t to, std::int64_t bytes, std::int32_t purpose) {
  Schedule(now_ + MessageTime(from, to, bytes), EventKind::kArrival, from, to, purpose);
}

void Fabric::AskForMessage(std::int32_t from, std::int32_t to) {
  Channel& channel = ChannelOf(from, to);
  if (channel.arrived > 0) {
    --channel.arrived;
    Schedule(now_, EventKind::kLateReceive, to, 0, 0);
  } else {
    ++channel.asked;
  }
}

void Fabric::OnArrival(const Event& event) {
  if (event.purpose == kChainSend) Continue(event.a);
  if (event.purpose == kBackground) {
    At(event.a).background.pop_front();
    StartNextBackgroundSend(event.a);
    FinishIfDone(event.a);
  }
  Channel& channel = ChannelOf(event.a, event.b);
  if (channel.asked > 0) {
    --channel.asked;
    OnReceived(event.b);
  } else {
    ++channel.arrived;
  }
}

void Fabric::OnReceived(std::int32_t npu) {
  if (At(npu).in_collective) return OnRingReceived(npu);
  Continue(npu);
}

void Fabric::StartNextBackgroundSend(std::int32_t npu) {
  Npu& state = At(npu);
  if (state.background.empty()) return;
  const auto [to, bytes] = state.background.front();
  SendMessage(npu, to, bytes, kBackground);
}

std::int32_t Fabric::Neighbour(std::int32_t npu, std::int32_t dimension, std::int64_t step) const {
  const std::size_t d = static_cast<std::size_t>(dimension);
  const std::int64_t size = spec_.dimensions[d].size;
  const std::int64_t place = npu / strides_[d] % size;
  const std::int64_t other = (place + step + size) % size;
  return static_cast<std::int32_t>(npu + (other - place) * strides_[d]);
}

// Over several dimensions an all-reduce is reduce-scatters upwards, one all-reduce, all-gathers downwards.
// False when there is nobody to talk to.
bool Fabric::StartCollective(std::int32_t npu, const Op& op) {
  Npu& state = At(npu);
  const auto& scope = spec_.scopes[static_cast<std::size_t>(npu)][static_cast<std::size_t>(op.scope)];
  if (IsAllReduceOfTwo(op, scope)) {
    StartAllReduceOfTwo(npu, scope[0], std::max<std::int64_t>(op.amount, spec_.num_npus));
    return true;
  }
  std::vector<std::int32_t> dims;
  for (const std::int32_t d : scope) {
    if (spec_.dimensions[static_cast<std::size_t>(d)].size > 1) dims.push_back(d);
  }
  state.phases.clear();
  if (dims.empty()) return false;
  const auto size_of = [&](std::int32_t d) { return spec_.dimensions[static_cast<std::size_t>(d)].size; };
  std::int64_t bytes = op.amount;
  if (op.collective != Collective::kAllGather) {
    bytes = std::max<std::int64_t>(bytes, spec_.num_npus);
  }
  if (op.collective != Collective::kAllGather) {
    const std::size_t scattered = op.collective == Collective::kAllReduce ? dims.size() - 1 : dims.size();
    for (std::size_t i = 0; i < scattered; ++i) {
      state.phases.push_back({Collective::kReduceScatter, dims[i], bytes});
      bytes /= size_of(dims[i]);
    }
  }
  if (op.collective == Collective::kAllReduce) {
    state.phases.push_back({Collective::kAllReduce, dims.back(), bytes});
    dims.pop_back();
  }
  if (op.collective != Collective::kReduceScatter) {
    for (std::size_t i = dims.size(); i-- > 0;) {
      state.phases.push_back({Collective::kAllGather, dims[i], bytes});
      bytes *= size_of(dims[i]);
    }
  }
  state.phase = 0;
  state.in_collective = true;
  return StartNextPhase(npu);
}

// Two reads and a write of local memory, each truncated on its own.
TimeNs Fabric::ReduceTime(std::int64_t message_bytes) const {
  return 3 * static_cast<TimeNs>(static_cast<double>(message_bytes) / spec_.reduce_bytes_per_s * 1e9);
}

bool Fabric::IsAllReduceOfTwo(const Op& op, const std::vector<std::int32_t>& scope) const {
  return spec_.only_ends_matter && op.kind == OpKind::kCollective &&
         op.collective == Collective::kAllReduce && scope.size() == 1 &&
         spec_.dimensions[static_cast<std::size_t>(scope[0])].size == 2;
}

// Links are not shared, so from the moment at which both ranks have begun, everything is fixed: each sends at
// `asks`, has the other's half at `has`, reduces, sends on at `passes`, and has the other's result at `ends`.
// Ranks end as far apart as they began, or by a message; two that end together began together, and keep their
// order.
void Fabric::StartAllReduceOfTwo(std::int32_t npu, std::int32_t dimension, std::int64_t bytes) {
  Npu& own = At(npu);
  const std::int32_t partner = Neighbour(npu, dimension, 1);
  Npu& other = At(partner);
  own.collective_began_ns = now_;
  if (!other.awaits_partner) {
    own.awaits_partner = true;
    return;
  }
  other.awaits_partner = false;
  const TimeNs message = MessageTime(npu, partner, bytes / 2);
  const TimeNs reduce = ReduceTime(bytes / 2);
  const std::array<TimeNs, 2> asks = {other.collective_began_ns + kEndpointDelayNs, now_ + kEndpointDelayNs};
  std::array<TimeNs, 2> passes{};
  for (std::size_t r = 0; r < 2; ++r) {
    const TimeNs has = std::max(asks[r], asks[1 - r] + message);
    passes[r] = has + kEndpointDelayNs + reduce;
  }
  const auto ends = [&](std::size_t r) {
    return std::max(passes[r], passes[1 - r] + message) + kEndpointDelayNs;
  };
  WakeNpu(partner, ends(0), Wake::kCollectiveEnd, 0);
  WakeNpu(npu, ends(1), Wake::kCollectiveEnd, 0);
}

bool Fabric::StartNextPhase(std::int32_t npu) {
  Npu& state = At(npu);
  const Npu::Phase& phase = state.phases[state.phase];
  state.members = spec_.dimensions[static_cast<std::size_t>(phase.dimension)].size;
  const bool gather = phase.collective == Collective::kAllGather;
  state.message_bytes = gather ? phase.bytes : phase.bytes / state.members;
  state.sends_left = (phase.collective == Collective::kAllReduce ? 2 : 1) * (state.members - 1);
  state.received = 0;
  // Two reads and a write of local memory, each truncated on its own.
  state.reduce_ns =
      3 * static_cast<TimeNs>(static_cast<double>(state.message_bytes) / spec_.reduce_bytes_per_s * 1e9);
  WakeNpu(npu, now_ + kEndpointDelayNs, Wake::kRing, 0);
  return true;
}

void Fabric::RingSend(std::int32_t npu) {
  Npu& state = At(npu);
  const std::int32_t dimension = state.phases[state.phase].dimension;
  --state.sends_left;
  SendMessage(npu, Neighbour(npu, dimension, 1), state.message_bytes, kRingSend);
  AskForMessage(Neighbour(npu, dimension, -1), npu);
}

void Fabric::OnRingReceived(std::int32_t npu) {
  Npu& state = At(npu);
  ++state.received;
  const Collective collective = state.phases[state.phase].collective;
  const bool reduces = collective == Collective::kReduceScatter ||
                       (collective == Collective::kAllReduce && state.received < state.members);
  WakeNpu(npu, now_ + kEndpointDelayNs + (reduces ? state.reduce_ns : 0), Wake::kRing, 0);
}

void Fabric::OnRingTurn(std::int32_t npu) {
  Npu& state = At(npu);
  if (state.sends_left > 0) return RingSend(npu);
  if (++state.phase < state.phases.size()) {
    StartNextPhase(npu);
    return;
  }
  state.in_collective = false;
  OnCollectiveEnd(npu);
}

void Fabric::OnCollectiveEnd(std::int32_t npu) {
  if (--At(npu).parallel_parts == 0) Continue(npu);
}

}  // namespace plumbline
