#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/api/engine.h"
#include "engine/api/registry.h"
#include "engine/core/engine_loop.h"

namespace plumbline {

// How one request is answered. Requests do not wait for each other.
struct Script {
  TimeNs ttft_ns = 0;       // from arrival to the first token
  TimeNs itl_ns = 0;        // from a token to the next; a bundle takes as many gaps as it has tokens
  std::int64_t bundle = 1;  // tokens that arrive together after the first
  // Ends with kError when so many tokens are out.
  std::optional<std::int64_t> fails_after_tokens{};
};

struct ScriptedOptions {
  std::string model;  // as asked for: facts only
  std::string dtype;
  TimeMode mode = TimeMode::kReal;
  // Called by the submitting thread.
  std::function<Script(const Request&)> script = [](const Request&) { return Script{}; };
  // The whole engine dies when so many tokens are out.
  std::optional<std::int64_t> dies_after_tokens;
  std::optional<std::int64_t> vocab_size;     // of the answers' ids, which count up from 0; and enforced
  std::optional<std::int64_t> max_model_len;  // enforced
};

// An engine that computes nothing: each request follows its script. With all times zero it is the null
// engine, which bounds what everything around it costs.
std::unique_ptr<Engine> MakeScriptedEngine(ScriptedOptions options);

// Kind "scripted". --engine-arg keys: clock (real, virtual), ttft-ms, itl-ms, bundle, fail-every (each n-th
// request by its row fails), fail-after-tokens (after so many tokens; default 0), die-after-tokens,
// vocab-size.
void RegisterScriptedEngine(EngineRegistry& registry);

// The spec as options. Throws Error(kBadInput) naming the key, and for what this engine cannot honour.
ScriptedOptions ParseScriptedSpec(const EngineSpec& spec);

}  // namespace plumbline
