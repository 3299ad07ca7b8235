#include "reversing_engine.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/base/error.h"

namespace {

using namespace plumbline;

class ReversingEngine : public Engine {
 public:
  explicit ReversingEngine(const EngineSpec& spec) {
    facts_.engine = "reversing";
    facts_.engine_version = "1";
    facts_.model = spec.model;
    facts_.kv_capacity.unknown_reason = "has no KV cache";
    thread_ = std::thread([this] { Serve(); });
  }

  ~ReversingEngine() override { ReversingEngine::Shutdown(); }

  const Facts& facts() const override { return facts_; }

  void Submit(std::vector<Request> requests, EventSink& sink) override {
    {
      std::lock_guard lock(mutex_);
      for (Request& request : requests) queue_.push_back({std::move(request), &sink});
    }
    wake_.notify_one();
  }

  void Cancel(RequestId) override {}  // every request is finished as soon as it is taken up

  Counters Sample() const override {
    std::lock_guard lock(mutex_);
    return counters_;
  }

  bool ResetPrefixCache() override { return true; }

  void Shutdown() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Job {
    Request request;
    EventSink* sink;
  };

  void Serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Job job = std::move(queue_.front());
      queue_.pop_front();
      const bool cancelled = stopping_;
      lock.unlock();
      Answer(job, cancelled);
      lock.lock();
      counters_.prompt_tokens += job.request.input_toks;
      counters_.generation_tokens += cancelled ? 0 : job.request.output_toks;
    }
  }

  void Answer(const Job& job, bool cancelled) {
    const std::vector<TokenId>& prompt = job.request.prompt_token_ids;
    std::vector<TokenId> ids;
    for (std::int64_t i = 0; i < job.request.output_toks; ++i) {
      const std::size_t back = static_cast<std::size_t>(i) % (prompt.empty() ? 1 : prompt.size());
      ids.push_back(prompt.empty() ? 0 : prompt[prompt.size() - 1 - back]);
    }
    std::vector<Event> events;
    Event event{.id = job.request.id, .time_ns = clock_.NowNs(), .kind = EventKind::kQueued};
    events.push_back(event);
    if (!cancelled) {
      event.kind = EventKind::kScheduled;
      events.push_back(event);
      event.kind = EventKind::kTokens;
      for (const TokenId& id : ids) {
        event.time_ns = clock_.NowNs();
        event.count = 1;
        event.token_ids = &id;
        events.push_back(event);
      }
    }
    event = {.id = job.request.id, .time_ns = clock_.NowNs(), .kind = EventKind::kFinished};
    event.reason = cancelled ? FinishReason::kCancelled : FinishReason::kLength;
    events.push_back(event);
    job.sink->OnEvents(events);
  }

  Facts facts_;
  MonotonicClock clock_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> queue_;
  Counters counters_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace

void RegisterReversingEngine(EngineRegistry& registry) {
  registry.Register({.kind = "reversing",
                     .help = "answers with the prompt in reverse",
                     .check =
                         [](const EngineSpec& spec) {
                           if (spec.tensor_parallel_size != 1) {
                             ThrowBadInput({.field = "--tensor-parallel-size",
                                            .value = std::to_string(spec.tensor_parallel_size),
                                            .problem = "is more than this engine can do",
                                            .accepted = "1"});
                           }
                         },
                     .boot = [](const EngineSpec& spec) { return std::make_unique<ReversingEngine>(spec); }});
}
