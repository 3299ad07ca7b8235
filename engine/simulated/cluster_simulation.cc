#include "engine/simulated/cluster_simulation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/simulated/cluster_group.h"

namespace plumbline {
namespace {

constexpr TimeNs kIdleStepNs = 1'000'000;

}  // namespace

ClusterSimulation::ClusterSimulation(const ClusterSpec& cluster, const SimulationOptions& options,
                                     SimulationListener& listener)
    : cluster_(cluster),
      options_(options),
      listener_(listener),
      plan_(PlanCluster(cluster)),
      fabric_(plan_.fabric),
      asleep_(static_cast<std::size_t>(plan_.fabric.num_npus)) {
  for (std::size_t i = 0; i < cluster.instances.size(); ++i) {
    const InstanceSpec& spec = cluster.instances[i];
    instances_.push_back(std::make_unique<ClusterInstance>(static_cast<std::int64_t>(i), spec,
                                                           plan_.instances[i], plan_, listener));
    totals_.prefix_caching = totals_.prefix_caching || spec.scheduler.enable_prefix_caching;
    if (spec.dp_group.empty()) continue;
    auto& group = groups_[spec.dp_group];
    if (!group) group = std::make_unique<Group>();
    group->members.push_back(instances_.back().get());
  }
  for (const auto& instance : instances_) {
    if (instance->has_end()) poll_order_.push_back(instance->plan().end_npu);
  }
  for (const auto& instance : instances_) poll_order_.push_back(instance->plan().start_npu);
  if (options.prefix_storage != PrefixStorage::kNone) MakeLowerTiers();
}

ClusterSimulation::~ClusterSimulation() = default;

void ClusterSimulation::Add(std::vector<SimulationRequest> requests) {
  for (SimulationRequest& request : requests) {
    if (const std::string problem = NeverFits(request); !problem.empty()) {
      ThrowBadInput({.field = "request " + std::to_string(request.id), .problem = problem});
    }
    auto sequence = std::make_unique<SimulatedSequence>();
    sequence->id = request.id;
    sequence->input_toks = request.input_toks;
    sequence->output_toks = request.output_toks;
    sequence->arrival_ns = request.arrival_ns;
    sequence->token_ids = std::move(request.token_ids);
    sequence->session = request.session;
    sequence->tool_duration_ns = request.tool_duration_ns;
    const auto follows = [&] { return sessions_.contains(request.session); };
    if (request.session >= 0 && follows()) {
      sessions_[request.session].push_back(std::move(sequence));
      continue;
    }
    if (request.session >= 0) sessions_[request.session];
    const TimeNs arrival = sequence->arrival_ns;
    pending_.emplace(arrival, std::move(sequence));
  }
  changed_ = true;
}

// A request that no step and no cache can ever hold would wait for ever, and all others behind it.
std::string ClusterSimulation::NeverFits(const SimulationRequest& request) const {
  const std::int64_t places = request.input_toks + request.output_toks - 1;
  const std::string what = std::to_string(request.input_toks) + " prompt + " +
                           std::to_string(request.output_toks) + " output tokens can never fit";
  for (const auto& instance : instances_) {
    const SchedulerConfig& config = instance->plan().scheduler;
    const std::int64_t blocks = (places + config.block_size - 1) / config.block_size;
    if (blocks > config.num_blocks) {
      return what + ": they need " + std::to_string(blocks) + " KV blocks of " +
             std::to_string(config.block_size) + " tokens, instance " + std::to_string(instance->index()) +
             " has " + std::to_string(config.num_blocks);
    }
    if (!config.enable_chunked_prefill && places > config.max_num_batched_tokens) {
      return what + " into one step of max_num_batched_tokens " +
             std::to_string(config.max_num_batched_tokens) + ", and chunked prefill is off";
    }
  }
  return {};
}

void ClusterSimulation::Cancel(RequestId id) {
  std::erase_if(cancelled_, [](const auto& sequence) { return sequence->batches_in_flight == 0; });
  std::erase_if(pending_, [id](const auto& entry) { return entry.second->id == id; });
  const auto found = routed_.find(id);
  if (found == routed_.end()) return;
  SimulatedSequence& sequence = *found->second;
  std::erase(transfers_, &sequence);
  instances_[static_cast<std::size_t>(sequence.instance)]->scheduler().Remove(sequence);
  cancelled_.push_back(std::move(found->second));
  routed_.erase(found);
  changed_ = true;
}

// Before anything else each NPU computes up to the first arrival, at most one log interval.
void ClusterSimulation::Start() {
  started_ = true;
  const TimeNs first = std::max<TimeNs>(1, pending_.begin()->first);
  auto alarm = std::make_shared<Program>();
  alarm->before.push_back({.kind = OpKind::kCompute, .amount = std::min(first, options_.log_interval_ns)});
  for (std::int32_t npu = 0; npu < plan_.fabric.num_npus; ++npu) fabric_.Run(npu, alarm);
}

std::optional<TimeNs> ClusterSimulation::NextTurn() const {
  if (exited_) return std::nullopt;
  if (!started_) {
    if (pending_.empty()) return std::nullopt;
    return std::min(std::max<TimeNs>(1, pending_.begin()->first), options_.log_interval_ns);
  }
  if (!fabric_.idle()) return fabric_.NextEventTime();
  if (options_.open_ended && Drained()) return std::nullopt;
  return now() + IdleStep();
}

bool ClusterSimulation::Drained() const {
  return pending_.empty() && transfers_.empty() && sessions_.empty() &&
         std::all_of(instances_.begin(), instances_.end(), [](const auto& i) { return i->empty(); });
}

// As many idle steps as pass before anything can change: after a turn without change, nothing does until the
// next arrival or heartbeat.
TimeNs ClusterSimulation::IdleStep() const {
  if (changed_ || pending_.empty()) return kIdleStepNs;
  const TimeNs next = std::min(pending_.begin()->first, last_beat_ns_ + options_.log_interval_ns + 1);
  const TimeNs steps = (next - now() + kIdleStepNs - 1) / kIdleStepNs;
  return std::max<TimeNs>(1, steps) * kIdleStepNs;
}

bool ClusterSimulation::Turn() {
  if (!started_) {
    if (pending_.empty()) return false;
    Start();
  }
  if (exited_ || (options_.open_ended && fabric_.idle() && Drained())) return false;
  const TimeNs idle_step = IdleStep();
  if (!fabric_.Advance()) {
    if (!changed_ && pending_.empty()) ThrowStuck();
    fabric_.Wait(idle_step);
  }
  changed_ = false;
  for (const std::int32_t npu : poll_order_) {
    if (asleep_[static_cast<std::size_t>(npu)] || !fabric_.Finished(npu)) continue;
    if (Poll(npu)) changed_ = true;
    if (exited_) break;
  }
  return !exited_;
}

// Returns whether anything changed.
bool ClusterSimulation::Poll(std::int32_t npu) {
  ClusterInstance& instance =
      *instances_[static_cast<std::size_t>(plan_.instance_of_npu[static_cast<std::size_t>(npu)])];
  const std::size_t pending_before = pending_.size();
  RouteArrived();
  const std::int64_t next_id = fabric_.FinishedPrograms(npu) - 1;
  const std::int64_t in_flight_before = instance.in_flight();
  for (SimulatedSequence* sequence : instance.Report(npu, next_id - 1, now())) {
    HandleFinished(instance, *sequence);
  }
  AcceptTransfers();
  const bool completed = instance.in_flight() != in_flight_before;
  const bool served = Serve(instance, npu, next_id);
  if (npu == instance.plan().start_npu) BeatIfDue();
  const bool done = !served && FinishIfDone(instance, npu);
  return served || completed || done || pending_.size() != pending_before;
}

void ClusterSimulation::RouteArrived() {
  while (!pending_.empty() && pending_.begin()->first <= now()) {
    std::unique_ptr<SimulatedSequence> owned = std::move(pending_.begin()->second);
    pending_.erase(pending_.begin());
    SimulatedSequence& sequence = *owned;
    ClusterInstance& instance = Choose(next_instance_, Role::kDecode);
    sequence.instance = instance.index();
    instance.scheduler().Enqueue(sequence);
    listener_.OnQueued(sequence, now());
    routed_.emplace(sequence.id, std::move(owned));
  }
}

// Among the instances that have not the excluded role, starting after the last one chosen.
ClusterInstance& ClusterSimulation::Choose(std::int64_t& next, Role excluded) {
  std::vector<ClusterInstance*> candidates;
  for (const auto& instance : instances_) {
    const bool decode = instance->spec().role == Role::kDecode;
    if (decode != (excluded == Role::kDecode)) candidates.push_back(instance.get());
  }
  const std::int64_t count = static_cast<std::int64_t>(candidates.size());
  std::int64_t chosen = next % count;
  if (options_.routing == RequestRouting::kLoad) {
    double lowest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = (next + i) % count;
      const Scheduler& scheduler = candidates[static_cast<std::size_t>(place)]->scheduler();
      const double load = static_cast<double>(4 * scheduler.waiting().size() +
                                              static_cast<std::int64_t>(scheduler.running().size())) /
                          static_cast<double>(scheduler.config().max_num_seqs);
      if (i > 0 && load >= lowest) continue;
      lowest = load;
      chosen = place;
    }
  }
  if (options_.routing == RequestRouting::kRandom) chosen = random_.Below(static_cast<std::uint32_t>(count));
  next = (chosen + 1) % count;
  return *candidates[static_cast<std::size_t>(chosen)];
}

void ClusterSimulation::HandleFinished(ClusterInstance& instance, SimulatedSequence& sequence) {
  if (instance.spec().role == Role::kPrefill && sequence.reached < sequence.limit()) {
    transfers_.push_back(&sequence);
    return;
  }
  ++totals_.requests;
  totals_.input_tokens += sequence.input_toks;
  SimulatedRow& row = sequence.row;
  row.id = sequence.id;
  row.input_toks = sequence.input_toks;
  row.output_toks = sequence.output_toks;
  row.arrival_ns = sequence.arrival_ns;
  const std::int64_t session = sequence.session;
  const TimeNs tool_duration = sequence.tool_duration_ns;
  SimulatedRow finished = std::move(row);
  routed_.erase(sequence.id);
  listener_.OnRow(instance.index(), std::move(finished), now());
  if (session >= 0) ReleaseNextOfSession(session, tool_duration);
}

void ClusterSimulation::ReleaseNextOfSession(std::int64_t session, TimeNs tool_duration_ns) {
  const auto found = sessions_.find(session);
  if (found->second.empty()) {
    sessions_.erase(found);
    return;
  }
  std::unique_ptr<SimulatedSequence> next = std::move(found->second.front());
  found->second.pop_front();
  next->arrival_ns = now() + tool_duration_ns;
  const TimeNs arrival = next->arrival_ns;
  pending_.emplace(arrival, std::move(next));
}

// In order; one that finds no room waits, and those behind it with it.
void ClusterSimulation::AcceptTransfers() {
  while (!transfers_.empty()) {
    std::int64_t next = next_decode_instance_;
    const PythonRandom before = random_;
    ClusterInstance& instance = Choose(next, Role::kPrefill);
    if (!instance.scheduler().EnqueuePrefilled(*transfers_.front())) {
      transfer_waited_ = true;
      random_ = before;
      return;
    }
    transfers_.front()->instance = instance.index();
    next_decode_instance_ = next;
    transfers_.pop_front();
  }
}

bool ClusterSimulation::Serve(ClusterInstance& instance, std::int32_t npu, std::int64_t next_id) {
  const bool joins = npu != instance.plan().start_npu || instance.in_flight() >= instance.spec().pp;
  Round* round = joins ? instance.Take(npu, next_id) : instance.Build(now());
  if (!instance.spec().dp_group.empty()) {
    return ServeInGroup(*groups_.at(instance.spec().dp_group), instance, npu, round, !joins);
  }
  if (round == nullptr) return false;
  if (!joins) round->programs = instance.builder().Build(round->figures);
  Send(instance, npu, round->programs);
  return true;
}

// The start NPU's batch goes to all NPUs but the end one, which asks for it itself.
void ClusterSimulation::Send(ClusterInstance& instance, std::int32_t npu,
                             const std::vector<std::shared_ptr<const Program>>& programs) {
  const InstancePlan& plan = instance.plan();
  const auto program_of = [&](std::int32_t id) {
    return programs[static_cast<std::size_t>(id - plan.first_npu)];
  };
  fabric_.Run(npu, program_of(npu));
  if (npu != plan.start_npu) return;
  for (std::int32_t id = plan.start_npu + 1; id < plan.end_npu; ++id) fabric_.Run(id, program_of(id));
}

void ClusterSimulation::BeatIfDue() {
  if (now() <= last_beat_ns_ + options_.log_interval_ns) return;
  last_beat_ns_ += options_.log_interval_ns;
  Heartbeat beat;
  beat.time_ns = last_beat_ns_;
  std::int64_t prompt = 0;
  std::int64_t generated = 0;
  for (const auto& instance : instances_) {
    prompt += instance->scheduler().totals().prefill_work_tokens;
    generated += instance->scheduler().totals().generated_tokens;
    beat.instances.push_back(instance->State());
  }
  beat.prompt_tokens = prompt - std::exchange(beat_prompt_tokens_, prompt);
  beat.generated_tokens = generated - std::exchange(beat_generated_tokens_, generated);
  listener_.OnHeartbeat(beat);
}

// True when the NPU goes to sleep.
bool ClusterSimulation::FinishIfDone(ClusterInstance& instance, std::int32_t npu) {
  if (options_.open_ended || instance.done() || !instance.empty() || !pending_.empty() || !sessions_.empty())
    return false;
  if (instance.spec().role == Role::kDecode && (!transfers_.empty() || !PrefillDone())) return false;
  if (!instance.spec().dp_group.empty()) {
    const auto& members = groups_.at(instance.spec().dp_group)->members;
    if (!std::all_of(members.begin(), members.end(), [](const auto* member) { return member->empty(); })) {
      return false;
    }
  }
  instance.RecordDone(npu);
  asleep_[static_cast<std::size_t>(npu)] = true;
  exited_ = std::all_of(instances_.begin(), instances_.end(), [](const auto& i) { return i->done(); });
  if (exited_) totals_.clocks_ns = now();
  return true;
}

bool ClusterSimulation::PrefillDone() const {
  return std::all_of(instances_.begin(), instances_.end(), [](const auto& instance) {
    return instance->spec().role != Role::kPrefill || instance->done();
  });
}

void ClusterSimulation::ThrowStuck() const {
  for (const auto& instance : instances_) {
    const Sequence* waiting = instance->scheduler().waiting().front();
    if (waiting == nullptr) continue;
    ThrowBadInput({.field = "request " + std::to_string(waiting->id),
                   .problem = "waits on instance " + std::to_string(instance->index()) +
                              " for ever: nothing runs there, and it is not admitted"});
  }
  ThrowBadInput({.file = cluster_.source,
                 .problem = "the simulation stands still at " + std::to_string(now()) +
                            " ns with requests unfinished"});
}

SimulationTotals ClusterSimulation::Totals() const {
  SimulationTotals totals = totals_;
  for (const auto& instance : instances_) {
    const SchedulerTotals& own = instance->scheduler().totals();
    totals.prefill_work_tokens += own.prefill_work_tokens;
    totals.generated_tokens += own.generated_tokens;
    totals.preemptions += own.preemptions;
    totals.recomputed_tokens += own.recomputed_tokens;
    totals.prefix_requested_tokens += own.prefix_requested_tokens;
    totals.prefix_hit_tokens += own.prefix_hit_tokens;
    totals.prefix_recalled_tokens += own.prefix_recalled_tokens;
  }
  return totals;
}

std::vector<std::string> ClusterSimulation::Warnings() const {
  std::vector<std::string> warnings;
  for (const auto& instance : instances_) {
    for (const std::string& layer : instance->builder().missing_layers()) {
      warnings.push_back("instance " + std::to_string(instance->index()) +
                         ": the profile has no times for layer " + layer + "; it takes none");
    }
  }
  return warnings;
}

std::vector<std::string> ClusterSimulation::Unverified() const {
  std::vector<std::string> unverified;
  if (options_.routing == RequestRouting::kRoundRobin) unverified.push_back("request routing RR");
  if (options_.routing == RequestRouting::kRandom) unverified.push_back("request routing RAND");
  if (transfer_waited_) {
    unverified.push_back("a prefilled request waited for room on a decode instance (a rule of ours)");
  }
  if (Totals().prefix_recalled_tokens > 0) unverified.push_back("KV recalled from a lower tier");
  return unverified;
}

}  // namespace plumbline
