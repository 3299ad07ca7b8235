#pragma once

#include <memory>

#include "engine/api/engine.h"
#include "engine/core/executor.h"
#include "engine/core/scheduler_config.h"

namespace plumbline {

// What a CoreEngine is made of.
struct CoreEngineParts {
  // What the maker of the executor knows. vocab_size and max_model_len, where given, are enforced at submit;
  // what the scheduler decides (max_num_seqs, max_num_batched_tokens, prefix caching, kv_capacity) is filled
  // in by the engine.
  Facts facts;
  SchedulerConfig scheduler;
  SchedulingPolicy policy = kRealEnginePolicy;
  std::unique_ptr<Executor> executor;
};

// An engine with continuous batching over an executor, on the monotonic clock (MakeEngine says how).
//
// A request that can never be served is refused at submit (kFinished with kRefused and the numbers): a prompt
// and answer longer than max_model_len or than the whole KV cache, an id outside the vocabulary, ids that are
// not input_toks many, an id that is in flight already.
std::unique_ptr<Engine> MakeCoreEngine(CoreEngineParts parts);

// The same engine in virtual time: no thread, no clock; the caller moves it through virtual_time().
std::unique_ptr<Engine> MakeVirtualCoreEngine(CoreEngineParts parts);

}  // namespace plumbline
