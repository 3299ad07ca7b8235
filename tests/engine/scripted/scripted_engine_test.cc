#include "engine/scripted/scripted_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "engine/base/error.h"
#include "tests/engine/core/engine_testing.h"

namespace plumbline {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr TimeNs kMs = 1'000'000;

EngineSpec Spec(std::map<std::string, std::string> extra) {
  EngineSpec spec;
  spec.kind = "scripted";
  spec.extra = std::move(extra);
  return spec;
}

std::unique_ptr<Engine> BootVirtual(std::map<std::string, std::string> extra) {
  extra["clock"] = "virtual";
  return MakeScriptedEngine(ParseScriptedSpec(Spec(std::move(extra))));
}

TEST(ScriptedEngine, PlaysTtftThenItl) {
  const auto engine = BootVirtual({{"ttft-ms", "5"}, {"itl-ms", "0.5"}});
  CollectingSink sink;
  engine->Submit({MakeRequest(0, 6, 3, 2 * kMs)}, sink);
  engine->virtual_time()->AdvanceTo(1000 * kMs);
  const auto story = sink.Of(0);
  EXPECT_EQ(story.queued_ns, 2 * kMs);
  EXPECT_EQ(story.scheduled_ns, 2 * kMs);
  EXPECT_THAT(story.token_times_ns, ElementsAre(7 * kMs, 7 * kMs + kMs / 2, 8 * kMs));
  EXPECT_THAT(story.token_ids, ElementsAre(0, 1, 2));
  EXPECT_EQ(story.finished, FinishReason::kLength);
  EXPECT_FALSE(sink.order_violated());
}

TEST(ScriptedEngine, BundlesArriveTogetherAtTheSameRate) {
  const auto engine = BootVirtual({{"ttft-ms", "1"}, {"itl-ms", "1"}, {"bundle", "3"}});
  CollectingSink sink;
  engine->Submit({MakeRequest(0, 6, 6)}, sink);
  engine->virtual_time()->AdvanceTo(1000 * kMs);
  EXPECT_THAT(sink.Of(0).token_times_ns, ElementsAre(kMs, 4 * kMs, 4 * kMs, 4 * kMs, 6 * kMs, 6 * kMs));
}

TEST(ScriptedEngine, EachRequestFollowsItsOwnScript) {
  ScriptedOptions options;
  options.mode = TimeMode::kVirtual;
  options.script = [](const Request& request) { return Script{.ttft_ns = 100 - request.id}; };
  const auto engine = MakeScriptedEngine(options);
  CollectingSink sink;
  engine->Submit(Burst(0, 3, 6, 1), sink);
  engine->virtual_time()->AdvanceTo(1000);
  EXPECT_THAT(sink.Of(0).token_times_ns, ElementsAre(100));
  EXPECT_THAT(sink.Of(2).token_times_ns, ElementsAre(98));
  EXPECT_FALSE(sink.order_violated());
}

TEST(ScriptedEngine, EveryNthRequestFails) {
  const auto engine = BootVirtual({{"fail-every", "3"}, {"fail-after-tokens", "2"}});
  CollectingSink sink;
  engine->Submit(Burst(0, 6, 6, 5), sink);
  engine->virtual_time()->AdvanceTo(0);
  for (RequestId id = 0; id < 6; ++id) {
    const bool fails = id == 2 || id == 5;
    EXPECT_EQ(sink.Of(id).finished, fails ? FinishReason::kError : FinishReason::kLength) << id;
    EXPECT_EQ(sink.Of(id).token_times_ns.size(), fails ? 2u : 5u) << id;
  }
}

TEST(ScriptedEngine, DiesWithItsRequestsAndStaysDead) {
  const auto engine = BootVirtual({{"die-after-tokens", "7"}});
  CollectingSink sink;
  engine->Submit(Burst(0, 3, 6, 5), sink);
  EXPECT_THROW(engine->virtual_time()->AdvanceTo(0), Error);
  EXPECT_EQ(sink.Of(0).finished, FinishReason::kLength);
  EXPECT_EQ(sink.Of(1).finished, FinishReason::kError);
  EXPECT_EQ(sink.Of(1).token_times_ns.size(), 2u);
  EXPECT_EQ(sink.Of(2).finished, FinishReason::kError);
  EXPECT_THAT(sink.Of(2).text, HasSubstr("after 7 tokens"));
  EXPECT_THROW(engine->Submit(Burst(9, 1, 6, 5), sink), Error);
}

TEST(ScriptedEngine, RefusesWhatItsLimitsForbid) {
  EngineSpec spec = Spec({{"clock", "virtual"}, {"vocab-size", "300"}});
  spec.max_model_len = 64;
  const auto engine = MakeScriptedEngine(ParseScriptedSpec(spec));
  CollectingSink sink;
  engine->Submit({MakeRequest(0, 60, 5), MakeRequest(3, 6, 5), MakeRequest(1, 6, 5)}, sink);
  engine->virtual_time()->AdvanceTo(0);
  EXPECT_THAT(sink.Of(0).text, HasSubstr("max_model_len 64"));
  EXPECT_THAT(sink.Of(3).text, HasSubstr("vocabulary of 300"));
  EXPECT_EQ(sink.Of(1).finished, FinishReason::kLength);
}

TEST(ScriptedEngine, CancelEndsARequestBeforeItsNextToken) {
  const auto engine = BootVirtual({{"ttft-ms", "1"}, {"itl-ms", "1"}});
  CollectingSink sink;
  engine->Submit({MakeRequest(0, 6, 9), MakeRequest(1, 6, 3)}, sink);
  engine->virtual_time()->AdvanceTo(2 * kMs);
  engine->Cancel(0);
  engine->virtual_time()->AdvanceTo(100 * kMs);
  EXPECT_EQ(sink.Of(0).finished, FinishReason::kCancelled);
  EXPECT_EQ(sink.Of(0).token_times_ns.size(), 2u);
  EXPECT_EQ(sink.Of(1).finished, FinishReason::kLength);
}

TEST(ScriptedEngine, NullEngineAnswersInRealTime) {
  const auto engine = MakeScriptedEngine({});
  CollectingSink sink;
  engine->Submit(Burst(0, 50, 6, 5000), sink);
  sink.WaitForFinished(50);
  EXPECT_EQ(sink.Of(49).token_ids.size(), 5000u);
  EXPECT_EQ(engine->Sample().generation_tokens, 250'000);
  EXPECT_FALSE(sink.order_violated());
}

// Looks at the engine from inside the event, where nothing later can have been published. (Sinks in use must
// not.)
class SamplingSink final : public EventSink {
 public:
  explicit SamplingSink(const Engine& engine) : engine_(engine) {}

  void OnEvents(std::span<const Event> events) override {
    for (const Event& event : events) {
      if (event.kind == EventKind::kTokens) told_ += event.count;
      if (event.kind == EventKind::kFinished) finished_.set_value(engine_.Sample().generation_tokens);
    }
  }

  // What the counters said when the request ended, then what the events had told until then.
  std::pair<std::int64_t, std::int64_t> Wait() {
    const std::int64_t counted = finished_.get_future().get();
    return {counted, told_};
  }

 private:
  const Engine& engine_;
  std::int64_t told_ = 0;
  std::promise<std::int64_t> finished_;
};

TEST(ScriptedEngine, CountersHoldWhatTheEventsTell) {
  const auto engine = MakeScriptedEngine({});
  SamplingSink sink(*engine);
  engine->Submit(Burst(0, 1, 6, 7), sink);
  const auto [counted, told] = sink.Wait();
  EXPECT_EQ(counted, 7);
  EXPECT_EQ(told, 7);
}

TEST(ScriptedEngine, ShutdownInMidScriptCancels) {
  const auto engine = MakeScriptedEngine(ParseScriptedSpec(Spec({{"itl-ms", "3600000"}})));
  CollectingSink sink;
  engine->Submit(Burst(0, 3, 6, 2), sink);
  for (RequestId id = 0; id < 3; ++id) sink.WaitForTokens(id, 1);
  EXPECT_FALSE(engine->ResetPrefixCache());
  engine->Shutdown();
  EXPECT_EQ(sink.num_finished(), 3u);
  EXPECT_EQ(sink.Of(1).finished, FinishReason::kCancelled);
}

TEST(ScriptedSpec, BadArgumentsAreNamedWithWhatIsAccepted) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"clock", "wall"},        {"ttft-ms", "-1"},   {"ttft-ms", "nan"},         {"itl-ms", "1e9"},
      {"itl-ms", "5x"},         {"bundle", "0"},     {"fail-every", "0"},        {"fail-after-tokens", "-1"},
      {"die-after-tokens", ""}, {"vocab-size", "0"}, {"no-such-key", "whatever"}};
  for (const auto& [key, value] : bad) {
    try {
      ParseScriptedSpec(Spec({{key, value}}));
      ADD_FAILURE() << key << "=" << value << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadInput);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(key), HasSubstr("accepted:")));
    }
  }
}

TEST(ScriptedSpec, RefusesByNameWhatItCannotHonour) {
  EngineSpec spec = Spec({});
  spec.tensor_parallel_size = 2;
  EXPECT_THROW(ParseScriptedSpec(spec), Error);
  spec = Spec({});
  spec.record_gate_stats = true;
  EXPECT_THROW(ParseScriptedSpec(spec), Error);
}

TEST(ScriptedEngine, IsBootedThroughTheRegistry) {
  EngineRegistry registry;
  RegisterScriptedEngine(registry);
  EngineSpec spec = Spec({{"clock", "virtual"}});
  spec.model = "any";
  const auto engine = registry.Boot(spec);
  EXPECT_EQ(engine->facts().engine, "scripted");
  EXPECT_EQ(engine->facts().model, "any");
  EXPECT_FALSE(engine->facts().kv_capacity.complete());
  EXPECT_NE(engine->virtual_time(), nullptr);
}

}  // namespace
}  // namespace plumbline
