#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "engine/clock/clock.h"
#include "engine/simulated/program.h"

namespace plumbline {

// A memory that serves one transfer at a time.
struct MemoryDevice {
  std::int64_t latency_ns = 0;
  std::int64_t bytes_per_ns = 1;
};

// One dimension of the network; NPU ids count through the first dimension first. Fully connected.
struct NetworkDimension {
  std::int64_t size = 1;
  double latency_ns = 0;
  double gib_per_s = 0;
};

struct FabricSpec {
  std::int32_t num_npus = 0;
  std::vector<NetworkDimension> dimensions;
  std::vector<MemoryDevice> devices;
  double reduce_bytes_per_s = 1;  // local memory bandwidth that a reduction reads and writes with
  // Nobody looks at the clock while programs run, so that only the times at which programs end have to exist:
  // consecutive computes may be one, and an all-reduce of two is computed in one go. Ends are the same to the
  // nanosecond, and in the same order.
  bool only_ends_matter = false;
  // Dimensions of each NPU's collectives, ascending.
  std::vector<std::array<std::vector<std::int32_t>, 2>> scopes;  // [npu][Scope]
};

// NPUs, memories and links in simulated time: each NPU works through programs, and meets the others in
// messages and collectives.
class Fabric {
 public:
  explicit Fabric(FabricSpec spec);
  ~Fabric();

  TimeNs now() const { return now_; }
  // Runs everything that happens at the next time at which something happens. False when nothing will.
  bool Advance();
  bool idle() const { return events_.empty(); }
  // When that is; the fabric must not be idle.
  TimeNs NextEventTime() const { return events_.top().time_ns; }
  // Lets an idle fabric wait.
  void Wait(TimeNs duration) { now_ += duration; }

  // Hands a program to an NPU; it starts now, or when the NPU has finished what it was given before.
  void Run(std::int32_t npu, std::shared_ptr<const Program> program);
  // Nothing left to do.
  bool Finished(std::int32_t npu) const;
  // Programs finished so far.
  std::int64_t FinishedPrograms(std::int32_t npu) const;

  // For cost estimates of closed forms: a message of so many bytes between two NPUs.
  TimeNs MessageTime(std::int32_t from, std::int32_t to, std::int64_t bytes) const;

 private:
  struct Npu;
  enum class EventKind : std::uint8_t { kNpuTick, kArrival, kLateReceive };
  struct Event {
    TimeNs time_ns;
    std::uint64_t order;  // of scheduling: decides between equal times
    EventKind kind;
    std::int32_t a;  // kNpuTick, kLateReceive: the NPU; kArrival: the sender
    std::int32_t b;  // kArrival: the receiver
    std::int32_t purpose;
    friend bool operator>(const Event& x, const Event& y) {
      return x.time_ns != y.time_ns ? x.time_ns > y.time_ns : x.order > y.order;
    }
  };
  enum class Wake : std::uint8_t { kCompute, kParallelCompute, kMemory, kRing, kCollectiveEnd };
  struct Transfer {
    std::int32_t npu;
    std::int32_t load;  // index of the load; -1 = the chain's own op
    std::int64_t bytes;
  };
  struct Device {
    MemoryDevice spec;
    bool busy = false;
    std::deque<Transfer> waiting;  // the first is being served while busy
  };
  // Messages of an ordered pair of NPUs: the k-th sent is for the k-th that asks.
  struct Channel {
    std::int64_t arrived = 0;
    std::int64_t asked = 0;
  };

  void Schedule(TimeNs time, EventKind kind, std::int32_t a, std::int32_t b, std::int32_t purpose);
  void WakeNpu(std::int32_t npu, TimeNs time, Wake wake, std::int32_t detail);
  void RunNpuTick(std::int32_t npu);
  void OnWake(std::int32_t npu, Wake wake, std::int32_t detail);
  void StartProgram(std::int32_t npu);
  void Continue(std::int32_t npu);
  bool StartOp(std::int32_t npu, const Op& op);
  void FinishIfDone(std::int32_t npu);

  void StartTransfer(std::int32_t device, const Transfer& transfer);
  void ServeNext(std::int32_t device);
  void OnMemory(std::int32_t device);

  void SendMessage(std::int32_t from, std::int32_t to, std::int64_t bytes, std::int32_t purpose);
  void AskForMessage(std::int32_t from, std::int32_t to);
  void OnArrival(const Event& event);
  void OnReceived(std::int32_t npu);
  void StartNextBackgroundSend(std::int32_t npu);

  bool StartCollective(std::int32_t npu, const Op& op);
  bool IsAllReduceOfTwo(const Op& op, const std::vector<std::int32_t>& scope) const;
  void StartAllReduceOfTwo(std::int32_t npu, std::int32_t dimension, std::int64_t bytes);
  bool StartNextPhase(std::int32_t npu);
  void RingSend(std::int32_t npu);
  void OnRingReceived(std::int32_t npu);
  void OnRingTurn(std::int32_t npu);
  void OnCollectiveEnd(std::int32_t npu);
  TimeNs ReduceTime(std::int64_t message_bytes) const;
  std::int32_t Neighbour(std::int32_t npu, std::int32_t dimension, std::int64_t step) const;
  Channel& ChannelOf(std::int32_t from, std::int32_t to);
  Npu& At(std::int32_t npu);
  const Npu& At(std::int32_t npu) const;

  FabricSpec spec_;
  std::vector<std::int64_t> strides_;  // of the dimensions in an NPU id
  std::vector<Npu> npus_;
  std::vector<Device> devices_;
  std::vector<Channel> channels_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t next_order_ = 0;
  TimeNs now_ = 0;
};

}  // namespace plumbline
