#include "engine/vllm/vllm_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/process/guard.h"
#include "engine/vllm/finished_request.h"
#include "engine/vllm/hop_times.h"
#include "engine/vllm/vllm_facts.h"
#include "engine/vllm/worker_link.h"

namespace plumbline {
namespace {

constexpr std::chrono::milliseconds kShutdownTimeout{60'000};
constexpr std::chrono::seconds kReplyTimeout{60};
constexpr const char* kWorker = "plumbline_vllm_worker.py";

std::string WorkerProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string worker = (self.parent_path() / kWorker).string();
  if (error || !std::filesystem::exists(worker, error)) {
    throw Error(ExitCode::kEngineFailed,
                std::string(kWorker) + " does not lie beside this program (" + worker + ")");
  }
  return worker;
}

// The log of an engine that nobody gave a folder for; gone with the engine.
class LogFile {
 public:
  explicit LogFile(const std::string& folder) : temporary_(folder.empty()) {
    if (!temporary_) {
      path_ = folder + "/engine.log";
      return;
    }
    path_ = (std::filesystem::temp_directory_path() / "plumbline-vllm-XXXXXX").string();
    const int fd = ::mkstemp(path_.data());
    if (fd < 0) throw Error(ExitCode::kInterrupted, path_ + ": cannot be made");
    ::close(fd);
  }
  ~LogFile() {
    std::error_code ignored;
    if (temporary_) std::filesystem::remove(path_, ignored);
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const bool temporary_;
  std::string path_;
};

// A member of a message as text; empty where it is absent or something else.
std::string Word(const Frame& frame, const char* key) {
  const auto found = frame.message.find(key);
  return found != frame.message.end() && found->is_string() ? found->get<std::string>() : std::string();
}

[[noreturn]] void ThrowFatal(const Frame& frame) {
  const std::string text = Word(frame, "text");
  if (Word(frame, "kind") == "argument") {
    throw Error(ExitCode::kBadInput, "vLLM does not take its arguments: " + text);
  }
  throw Error(ExitCode::kEngineFailed, "vLLM failed: " + text);
}

struct InFlight {
  EventSink* sink = nullptr;
  TimeNs sent_ns = 0;
};

class VllmEngine final : public Engine {
 public:
  explicit VllmEngine(const VllmOptions& options)
      : log_(options.log_folder),
        link_({.program = options.python,
               .arguments = {"-u", WorkerProgram(), std::to_string(kChildChannelFd)},
               .log_path = log_.path(),
               .grace = std::chrono::seconds(10)}) {
    link_.Send(EncodeFrame(
        Json{{"type", "boot"}, {"token_times", options.token_times}, {"kwargs", options.engine_arguments}}));
    facts_ = AwaitReady(options.boot_timeout);
    reader_ = std::thread([this] { Read(); });
  }

  ~VllmEngine() override { Shutdown(); }

  const Facts& facts() const override { return facts_; }

  void Submit(std::vector<Request> requests, EventSink& sink) override {
    Json messages = Json::array();
    std::string ids;
    std::vector<RequestId> accepted;
    const TimeNs now_ns = clock_.NowNs();
    const std::scoped_lock submitting(submit_mutex_);
    for (const Request& request : requests) {
      if (std::string refusal = WhyRefused(request, facts_); !refusal.empty()) {
        DeliverEnd(sink, request.id, FinishReason::kRefused, refusal);
        continue;
      }
      accepted.push_back(request.id);
      messages.push_back(RequestMessage(request));
      ids.append(reinterpret_cast<const char*>(request.prompt_token_ids.data()),
                 request.prompt_token_ids.size() * sizeof(TokenId));
    }
    {
      const std::scoped_lock lock(mutex_);
      ThrowIfDead();
      for (const RequestId id : accepted) in_flight_[id] = {&sink, now_ns};
    }
    if (accepted.empty()) return;
    link_.Send(EncodeFrame(Json{{"type", "submit"}, {"requests", std::move(messages)}}, ids));
  }

  void Cancel(RequestId id) override { link_.Send(EncodeFrame(Json{{"type", "cancel"}, {"id", id}})); }

  Counters Sample() const override {
    const std::scoped_lock lock(mutex_);
    ThrowIfDead();
    return counters_;
  }

  bool ResetPrefixCache() override {
    std::unique_lock lock(mutex_);
    ThrowIfDead();
    reply_.reset();
    const std::int64_t call = ++calls_;
    link_.Send(EncodeFrame(Json{{"type", "reset_prefix_cache"}, {"call", call}}));
    if (!changed_.wait_for(lock, kReplyTimeout, [&] { return reply_.has_value() || !dead_.empty(); })) {
      throw Error(ExitCode::kEngineFailed, "vLLM did not answer reset_prefix_cache within 60 s");
    }
    ThrowIfDead();
    return *reply_;
  }

  std::string EndFactsJson() const override {
    const std::scoped_lock lock(mutex_);
    return hops_.Json();
  }

  void Shutdown() override {
    if (!reader_.joinable()) return;
    {
      std::unique_lock lock(mutex_);
      shutting_down_ = true;
      if (dead_.empty()) {
        link_.Send(EncodeFrame(Json{{"type", "shutdown"}}));
        changed_.wait_for(lock, kShutdownTimeout, [&] { return !dead_.empty(); });
      }
    }
    link_.Stop();
    reader_.join();
    const std::scoped_lock lock(mutex_);
    if (dead_.empty()) dead_ = "the engine was shut down";
  }

 private:
  Facts AwaitReady(std::chrono::seconds timeout) {
    while (true) {
      const Frame frame = link_.Receive(timeout, "end of its boot");
      const std::string type = Word(frame, "type");
      if (type == "fatal") ThrowFatal(frame);
      if (type == "ready")
        return VllmFacts(frame.message.contains("facts") ? frame.message["facts"] : Json());
    }
  }

  static Json RequestMessage(const Request& request) {
    return {{"id", request.id},
            {"input_toks", request.prompt_token_ids.size()},
            {"output_toks", request.output_toks},
            {"temperature", request.sampling.temperature},
            {"top_k", request.sampling.top_k},
            {"top_p", request.sampling.top_p},
            {"seed", request.sampling.seed}};
  }

  // The reader's thread.
  void Read() {
    std::string end;
    try {
      while (end.empty()) {
        const Frame frame = link_.Receive(std::nullopt, "message");
        const std::string type = Word(frame, "type");
        if (type == "finished") {
          Finish(frame);
        } else if (type == "stats") {
          const Counters counters = ReadCounters(frame.message);
          const std::scoped_lock lock(mutex_);
          counters_ = counters;
        } else if (type == "reply") {
          const std::scoped_lock lock(mutex_);
          if (frame.message.value("call", std::int64_t{0}) == calls_)
            reply_ = frame.message.value("value", false);
          changed_.notify_all();
        } else if (type == "bye") {
          end = "the engine was shut down";
        } else if (type == "fatal") {
          ThrowFatal(frame);
        }
      }
    } catch (const std::exception& error) {
      end = error.what();
    }
    Die(end);
  }

  void Finish(const Frame& frame) {
    const FinishedRequest finished(frame);
    InFlight request;
    {
      const std::scoped_lock lock(mutex_);
      const auto found = in_flight_.find(finished.id());
      if (found == in_flight_.end()) return;
      request = found->second;
      in_flight_.erase(found);
      hops_.Add(finished.received_ns() - request.sent_ns);
    }
    const std::vector<Event> events = finished.Events(clock_.NowNs());
    const std::scoped_lock delivering(deliver_mutex_);
    request.sink->OnEvents(events);
  }

  void Die(const std::string& end) {
    std::unordered_map<RequestId, InFlight> lost;
    FinishReason reason;
    {
      const std::scoped_lock lock(mutex_);
      dead_ = end;
      lost.swap(in_flight_);
      reason = shutting_down_ ? FinishReason::kCancelled : FinishReason::kError;
      changed_.notify_all();
    }
    for (const auto& [id, request] : lost) DeliverEnd(*request.sink, id, reason, end);
  }

  void DeliverEnd(EventSink& sink, RequestId id, FinishReason reason, const std::string& text) {
    Event event;
    event.id = id;
    event.time_ns = clock_.NowNs();
    event.kind = EventKind::kFinished;
    event.reason = reason;
    event.text = text;
    const std::scoped_lock delivering(deliver_mutex_);
    sink.OnEvents(std::span(&event, 1));
  }

  void ThrowIfDead() const {
    if (!dead_.empty()) throw Error(ExitCode::kEngineFailed, dead_);
  }

  const MonotonicClock clock_;
  LogFile log_;
  WorkerLink link_;
  Facts facts_;

  std::mutex submit_mutex_;
  std::mutex deliver_mutex_;
  mutable std::mutex mutex_;  // all below
  std::condition_variable changed_;
  std::unordered_map<RequestId, InFlight> in_flight_;
  Counters counters_;
  HopTimes hops_;
  std::int64_t calls_ = 0;
  std::optional<bool> reply_;
  bool shutting_down_ = false;
  std::string dead_;  // last words; empty while it lives

  std::thread reader_;
};

}  // namespace

std::unique_ptr<Engine> BootVllm(const VllmOptions& options) {
  return std::make_unique<VllmEngine>(options);
}

void RegisterVllmEngine(EngineRegistry& registry) {
  registry.Register({.kind = "vllm",
                     .help = "vLLM's AsyncLLM in a process of its own, run by --python or PLUMBLINE_PYTHON\n"
                             "token-times=true|false boot-timeout-s=N; any other KEY is an argument of vLLM",
                     .check = [](const EngineSpec& spec) { RequireVllm(ParseVllmSpec(spec).python); },
                     .boot = [](const EngineSpec& spec) { return BootVllm(ParseVllmSpec(spec)); }});
}

}  // namespace plumbline
