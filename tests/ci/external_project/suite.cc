// A suite of its own: one example that boots the linked engine, one that boots it from the plug-in folder in
// argv.
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "fixtures/suite_main.h"
#include "reversing_engine.h"

namespace {

using namespace plumbline;

// Keeps the ids of one request and says when it is over.
class Collector : public EventSink {
 public:
  void OnEvents(std::span<const Event> events) override {
    std::lock_guard lock(mutex_);
    for (const Event& event : events) {
      if (event.kind == EventKind::kTokens)
        ids_.insert(ids_.end(), event.token_ids, event.token_ids + event.count);
      if (event.kind == EventKind::kFinished) reason_ = event.reason;
    }
    if (reason_ != FinishReason::kNone) finished_.notify_one();
  }

  std::vector<TokenId> Wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return reason_ != FinishReason::kNone; });
    return reason_ == FinishReason::kLength ? ids_ : std::vector<TokenId>{};
  }

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<TokenId> ids_;
  FinishReason reason_ = FinishReason::kNone;
};

ExampleOutcome Reverse(EngineRegistry& registry) {
  const std::unique_ptr<Engine> engine = registry.Boot({.kind = "reversing", .model = "none"});
  Collector collector;
  engine->Submit({{.id = 0, .input_toks = 3, .output_toks = 4, .prompt_token_ids = {7, 8, 9}}}, collector);
  const std::vector<TokenId> ids = collector.Wait();
  engine->Shutdown();
  const bool right = ids == std::vector<TokenId>{9, 8, 7, 9};
  return {.code = right ? ExitCode::kPass : ExitCode::kRegressed,
          .summary = right ? "pass" : "the prompt did not come back in reverse",
          .counters = {{"tokens", static_cast<double>(ids.size())}},
          .seconds = 1e-3};
}

}  // namespace

int main(int argc, char** argv) {
  std::string plugin_folder = ".";
  if (argc > 1 && argv[1][0] != '-') {
    plugin_folder = argv[1];
    argv[1] = argv[0];
    ++argv;
    --argc;
  }
  const auto linked = [](const ExampleContext&) {
    EngineRegistry registry;
    RegisterReversingEngine(registry);
    return Reverse(registry);
  };
  const auto plugin = [&](const ExampleContext&) {
    EngineRegistry registry;
    registry.AddPluginFolder(plugin_folder);
    return Reverse(registry);
  };
  return SuiteMain(argc, argv, [&] {
    return std::vector<SuiteExample>{{"reversing/linked", {}, linked}, {"reversing/plugin", {}, plugin}};
  });
}
