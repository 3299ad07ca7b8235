#include "engine/scripted/scripted_engine.h"

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/scripted/scripted_loop.h"

namespace plumbline {
namespace {

constexpr const char* kKnownKeys =
    "clock, ttft-ms, itl-ms, bundle, fail-every, fail-after-tokens, die-after-tokens, vocab-size";

[[noreturn]] void ThrowArg(const std::string& key, const std::string& value, const std::string& problem,
                           const std::string& accepted) {
  ThrowBadInput({.field = "--engine-arg " + key, .value = value, .problem = problem, .accepted = accepted});
}

std::int64_t ParseCount(const std::string& key, const std::string& value, std::int64_t least) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || end != value.data() + value.size() || count < least) {
    ThrowArg(key, value, "is not a count", "a whole number from " + std::to_string(least));
  }
  return count;
}

// An hour a token is more than any script means, and keeps sums far from overflow.
TimeNs ParseMs(const std::string& key, const std::string& value) {
  constexpr double kMostMs = 3.6e6;
  double ms = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), ms);
  if (error != std::errc() || end != value.data() + value.size() || !(ms >= 0) || !(ms <= kMostMs)) {
    ThrowArg(key, value, "is not a time", "milliseconds from 0 to 3600000");
  }
  return static_cast<TimeNs>(std::llround(ms * 1e6));
}

void RefuseWhatIsNotPlayed(const EngineSpec& spec) {
  const auto one = [](const char* flag, std::int64_t value) {
    if (value == 1) return;
    ThrowBadInput({.field = flag,
                   .value = std::to_string(value),
                   .problem = "is not supported by the scripted engine",
                   .accepted = "1"});
  };
  one("--tensor-parallel-size", spec.tensor_parallel_size);
  one("--data-parallel-size", spec.data_parallel_size);
  if (spec.record_gate_stats) {
    ThrowBadInput({.field = "--record-gate-stats",
                   .problem = "is not supported by the scripted engine, which has no experts"});
  }
}

}  // namespace

ScriptedOptions ParseScriptedSpec(const EngineSpec& spec) {
  RefuseWhatIsNotPlayed(spec);
  ScriptedOptions options;
  Script script;
  std::int64_t fail_every = 0;
  std::int64_t fail_after = 0;
  for (const auto& [key, value] : spec.extra) {
    if (key == "clock") {
      if (value != "real" && value != "virtual") ThrowArg(key, value, "is not a clock", "real, virtual");
      options.mode = value == "virtual" ? TimeMode::kVirtual : TimeMode::kReal;
    } else if (key == "ttft-ms") {
      script.ttft_ns = ParseMs(key, value);
    } else if (key == "itl-ms") {
      script.itl_ns = ParseMs(key, value);
    } else if (key == "bundle") {
      script.bundle = ParseCount(key, value, 1);
    } else if (key == "fail-every") {
      fail_every = ParseCount(key, value, 1);
    } else if (key == "fail-after-tokens") {
      fail_after = ParseCount(key, value, 0);
    } else if (key == "die-after-tokens") {
      options.dies_after_tokens = ParseCount(key, value, 1);
    } else if (key == "vocab-size") {
      options.vocab_size = ParseCount(key, value, 1);
    } else {
      ThrowArg(key, value, "is not a key of the scripted engine", kKnownKeys);
    }
  }
  options.model = spec.model;
  options.dtype = spec.dtype;
  options.max_model_len = spec.max_model_len;
  options.script = [script, fail_every, fail_after](const Request& request) {
    Script own = script;
    if (fail_every > 0 && (request.id + 1) % fail_every == 0) own.fails_after_tokens = fail_after;
    return own;
  };
  return options;
}

std::unique_ptr<Engine> MakeScriptedEngine(ScriptedOptions options) {
  Facts facts;
  facts.engine = "scripted";
  facts.engine_version = "1";
  facts.model = options.model;
  facts.dtype = options.dtype;
  facts.vocab_size = options.vocab_size;
  facts.max_model_len = options.max_model_len;
  facts.kv_capacity.unknown_reason = "the scripted engine has no KV cache";
  const TimeMode mode = options.mode;
  return MakeEngine(std::move(facts), std::make_unique<ScriptedLoop>(std::move(options)), mode);
}

void RegisterScriptedEngine(EngineRegistry& registry) {
  registry.Register(
      {.kind = "scripted",
       .help = "answers by script and computes nothing; all times 0 is the null engine\n"
               "clock=real|virtual ttft-ms=X itl-ms=X bundle=N fail-every=N "
               "fail-after-tokens=N die-after-tokens=N vocab-size=N",
       .check = [](const EngineSpec& spec) { ParseScriptedSpec(spec); },
       .boot = [](const EngineSpec& spec) { return MakeScriptedEngine(ParseScriptedSpec(spec)); }});
}

}  // namespace plumbline
