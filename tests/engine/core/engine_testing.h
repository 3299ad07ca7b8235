#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/core/core_engine.h"
#include "scheduler_testing.h"

namespace plumbline {

// Keeps every event, checks the order that EventSink promises, and lets a test wait for the end.
class CollectingSink final : public EventSink {
 public:
  void OnEvents(std::span<const Event> events) override {
    const std::lock_guard lock(mutex_);
    ++calls_;
    for (const Event& event : events) {
      Story& story = stories_[event.id];
      if (story.finished != FinishReason::kNone) order_violated_ = true;
      if (event.time_ns < last_time_) order_violated_ = true;
      last_time_ = event.time_ns;
      switch (event.kind) {
        case EventKind::kQueued:
          story.queued_ns = event.time_ns;
          break;
        case EventKind::kScheduled:
          story.scheduled_ns = event.time_ns;
          story.cached = event.count;
          break;
        case EventKind::kTokens:
          for (std::uint32_t i = 0; i < event.count; ++i) {
            story.token_times_ns.push_back(event.time_ns);
            if (event.token_ids != nullptr) story.token_ids.push_back(event.token_ids[i]);
          }
          break;
        case EventKind::kPreempted:
          ++story.preemptions;
          break;
        case EventKind::kDeparted:
          order_violated_ = true;
          break;
        case EventKind::kFinished:
          story.finished = event.reason;
          story.text = event.text;
          ++num_finished_;
          break;
      }
    }
    changed_.notify_all();
  }

  struct Story {
    TimeNs queued_ns = -1;
    TimeNs scheduled_ns = -1;
    std::uint32_t cached = 0;
    std::vector<TimeNs> token_times_ns;
    std::vector<TokenId> token_ids;
    int preemptions = 0;
    FinishReason finished = FinishReason::kNone;
    std::string text;
  };

  // Fails by the test's own timeout if they never finish.
  void WaitForFinished(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_finished_ >= count; });
  }
  void WaitForTokens(RequestId id, std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stories_[id].token_times_ns.size() >= count; });
  }
  Story Of(RequestId id) const {
    const std::lock_guard lock(mutex_);
    const auto found = stories_.find(id);
    return found == stories_.end() ? Story{} : found->second;
  }
  std::size_t num_finished() const {
    const std::lock_guard lock(mutex_);
    return num_finished_;
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  bool order_violated() const {
    const std::lock_guard lock(mutex_);
    return order_violated_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestId, Story> stories_;
  std::size_t num_finished_ = 0;
  TimeNs last_time_ = 0;
  int calls_ = 0;
  bool order_violated_ = false;
};

// Samples the position as the token id; a step takes `step_ns`. `before` runs first in each step.
class FakeExecutor final : public Executor {
 public:
  explicit FakeExecutor(TimeNs step_ns = 100, std::function<void(const Batch&)> before = {})
      : step_ns_(step_ns), before_(std::move(before)) {}

  TimeNs Execute(const Batch& batch, std::span<TokenId> sampled) override {
    if (before_) before_(batch);
    for (std::size_t i = 0; i < batch.entries.size(); ++i) {
      const BatchEntry& entry = batch.entries[i];
      sampled[i] = static_cast<TokenId>(entry.first_position + entry.num_tokens);
    }
    return step_ns_;
  }

 private:
  TimeNs step_ns_;
  std::function<void(const Batch&)> before_;
};

inline CoreEngineParts Parts(std::unique_ptr<Executor> executor = std::make_unique<FakeExecutor>()) {
  CoreEngineParts parts;
  parts.facts.engine = "fake";
  parts.facts.vocab_size = 1000;
  parts.facts.max_model_len = 64;
  parts.scheduler = {.max_num_seqs = 8, .max_num_batched_tokens = 32, .block_size = 4, .num_blocks = 20};
  parts.executor = std::move(executor);
  return parts;
}

inline Request MakeRequest(RequestId id, std::int64_t input_toks, std::int64_t output_toks,
                           TimeNs due_ns = 0) {
  Request request;
  request.id = id;
  request.input_toks = input_toks;
  request.output_toks = output_toks;
  request.prompt_token_ids = Ids(input_toks, static_cast<TokenId>(id * 100 % 900));
  request.due_ns = due_ns;
  return request;
}

inline std::vector<Request> Burst(RequestId first, std::int64_t count, std::int64_t input_toks,
                                  std::int64_t output_toks) {
  std::vector<Request> requests;
  for (RequestId id = first; id < first + count; ++id) {
    requests.push_back(MakeRequest(id, input_toks, output_toks));
  }
  return requests;
}

}  // namespace plumbline
