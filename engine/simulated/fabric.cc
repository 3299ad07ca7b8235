#include "engine/simulated/fabric.h"

#include <algorithm>

#include "engine/simulated/fabric_npu.h"

namespace plumbline {

Fabric::Fabric(FabricSpec spec)
    : spec_(std::move(spec)),
      npus_(static_cast<std::size_t>(spec_.num_npus)),
      channels_(npus_.size() * npus_.size()) {
  std::int64_t stride = 1;
  for (const NetworkDimension& dimension : spec_.dimensions) {
    strides_.push_back(stride);
    stride *= dimension.size;
  }
  for (const MemoryDevice& device : spec_.devices) {
    devices_.push_back({.spec = device, .busy = false, .waiting = {}});
  }
}

Fabric::~Fabric() = default;

Fabric::Npu& Fabric::At(std::int32_t npu) {
  return npus_[static_cast<std::size_t>(npu)];
}
const Fabric::Npu& Fabric::At(std::int32_t npu) const {
  return npus_[static_cast<std::size_t>(npu)];
}

Fabric::Channel& Fabric::ChannelOf(std::int32_t from, std::int32_t to) {
  return channels_[static_cast<std::size_t>(from) * npus_.size() + static_cast<std::size_t>(to)];
}

bool Fabric::Finished(std::int32_t npu) const {
  return At(npu).program == nullptr;
}
std::int64_t Fabric::FinishedPrograms(std::int32_t npu) const {
  return At(npu).finished_programs;
}

bool Fabric::Advance() {
  if (events_.empty()) return false;
  now_ = events_.top().time_ns;
  while (!events_.empty() && events_.top().time_ns == now_) {
    const Event event = events_.top();
    events_.pop();
    switch (event.kind) {
      case EventKind::kNpuTick:
        RunNpuTick(event.a);
        break;
      case EventKind::kArrival:
        OnArrival(event);
        break;
      case EventKind::kLateReceive:
        OnReceived(event.a);
        break;
    }
  }
  return true;
}

void Fabric::Schedule(TimeNs time, EventKind kind, std::int32_t a, std::int32_t b, std::int32_t purpose) {
  events_.push({.time_ns = time, .order = next_order_++, .kind = kind, .a = a, .b = b, .purpose = purpose});
}

// All wake-ups of an NPU at one time run together, where the first of them was scheduled: that decides who
// comes first at a shared memory when several NPUs finish at the same time.
void Fabric::WakeNpu(std::int32_t npu, TimeNs time, Wake wake, std::int32_t detail) {
  Npu& state = At(npu);
  const auto same_time =
      std::any_of(state.wakes.begin(), state.wakes.end(), [&](const auto& w) { return w.time_ns == time; });
  state.wakes.push_back({.time_ns = time, .wake = static_cast<std::uint8_t>(wake), .detail = detail});
  if (!same_time) Schedule(time, EventKind::kNpuTick, npu, 0, 0);
}

void Fabric::RunNpuTick(std::int32_t npu) {
  Npu& state = At(npu);
  // A wake-up may add others for this very time, which run with it.
  for (;;) {
    const auto due = std::find_if(state.wakes.begin(), state.wakes.end(),
                                  [&](const auto& w) { return w.time_ns == now_; });
    if (due == state.wakes.end()) return;
    const auto wake = *due;
    state.wakes.erase(due);
    OnWake(npu, static_cast<Wake>(wake.wake), wake.detail);
  }
}

void Fabric::OnWake(std::int32_t npu, Wake wake, std::int32_t detail) {
  switch (wake) {
    case Wake::kCompute:
      Continue(npu);
      break;
    case Wake::kParallelCompute:
      if (--At(npu).parallel_parts == 0) Continue(npu);
      break;
    case Wake::kMemory:
      OnMemory(detail);
      break;
    case Wake::kRing:
      OnRingTurn(npu);
      break;
    case Wake::kCollectiveEnd:
      OnCollectiveEnd(npu);
      break;
  }
}

void Fabric::Run(std::int32_t npu, std::shared_ptr<const Program> program) {
  Npu& state = At(npu);
  if (state.program != nullptr) {
    state.queued.push_back(std::move(program));
    return;
  }
  state.program = std::move(program);
  StartProgram(npu);
}

void Fabric::StartProgram(std::int32_t npu) {
  Npu& state = At(npu);
  state.next_op = 0;
  state.chain_ended = false;
  state.load_done.assign(state.program->loads.size(), false);
  state.waiting_for_load = false;
  if (state.program->loads.empty()) return Continue(npu);
  // The first op goes first to a memory that both use.
  Continue(npu);
  for (std::size_t i = 0; i < state.program->loads.size(); ++i) {
    const Load& load = state.program->loads[i];
    StartTransfer(load.device, {.npu = npu, .load = static_cast<std::int32_t>(i), .bytes = load.bytes});
  }
}

// Starts ops until one takes time.
void Fabric::Continue(std::int32_t npu) {
  Npu& state = At(npu);
  while (state.next_op < state.program->size()) {
    const Op& op = state.OpAt(state.next_op);
    if (op.waits_for_load >= 0 && !state.load_done[static_cast<std::size_t>(op.waits_for_load)]) {
      state.waiting_for_load = true;
      return;
    }
    ++state.next_op;
    if (StartOp(npu, op)) return;
  }
  state.chain_ended = true;
  FinishIfDone(npu);
}

// False when the op is over at once.
bool Fabric::StartOp(std::int32_t npu, const Op& op) {
  switch (op.kind) {
    case OpKind::kCompute:
      WakeNpu(npu, now_ + op.amount, Wake::kCompute, 0);
      return true;
    case OpKind::kMemory:
      StartTransfer(op.peer, {.npu = npu, .load = -1, .bytes = op.amount});
      return true;
    case OpKind::kSend:
      SendMessage(npu, op.peer, op.amount, kChainSend);
      return true;
    case OpKind::kReceive:
      AskForMessage(op.peer, npu);
      return true;
    case OpKind::kBackgroundSend:
      At(npu).background.push_back({op.peer, op.amount});
      if (At(npu).background.size() == 1) StartNextBackgroundSend(npu);
      return false;
    case OpKind::kCollective:
      At(npu).parallel_parts = 1;
      return StartCollective(npu, op);
    case OpKind::kCollectiveAndCompute:
      At(npu).parallel_parts = 2;
      WakeNpu(npu, now_ + op.compute_ns, Wake::kParallelCompute, 0);
      if (!StartCollective(npu, op)) --At(npu).parallel_parts;
      return true;
  }
  return false;
}

void Fabric::FinishIfDone(std::int32_t npu) {
  Npu& state = At(npu);
  if (!state.chain_ended || !state.background.empty()) return;
  ++state.finished_programs;
  state.program = nullptr;
  if (state.queued.empty()) return;
  state.program = std::move(state.queued.front());
  state.queued.pop_front();
  StartProgram(npu);
}

void Fabric::StartTransfer(std::int32_t device, const Transfer& transfer) {
  Device& memory = devices_[static_cast<std::size_t>(device)];
  memory.waiting.push_back(transfer);
  if (!memory.busy) ServeNext(device);
}

void Fabric::ServeNext(std::int32_t device) {
  Device& memory = devices_[static_cast<std::size_t>(device)];
  memory.busy = !memory.waiting.empty();
  if (!memory.busy) return;
  const Transfer& transfer = memory.waiting.front();
  WakeNpu(transfer.npu, now_ + memory.spec.latency_ns + transfer.bytes / memory.spec.bytes_per_ns,
          Wake::kMemory, device);
}

// The memory turns to the next transfer before the owner of this one goes on.
void Fabric::OnMemory(std::int32_t device) {
  Device& memory = devices_[static_cast<std::size_t>(device)];
  const Transfer done = memory.waiting.front();
  memory.waiting.pop_front();
  ServeNext(device);
  if (done.load < 0) return Continue(done.npu);
  Npu& owner = At(done.npu);
  owner.load_done[static_cast<std::size_t>(done.load)] = true;
  if (!owner.waiting_for_load) return;
  owner.waiting_for_load = false;
  Continue(done.npu);
}

}  // namespace plumbline
