#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "fixtures/workload/describe.h"
#include "fixtures/workload/workload.h"

namespace {

using namespace plumbline;

constexpr std::int64_t kVocabSize = 1000;

void Require(bool held) {
  if (!held) __builtin_trap();
}

void CheckRow(const WorkloadRow& row, bool ids_required) {
  Require(row.id >= 0 && row.line >= 1 && row.arrival_ns >= 0);
  Require(row.input_toks >= 1 && row.output_toks >= 1);
  Require(!ids_required || !row.input_tok_ids.empty());
  Require(row.input_tok_ids.empty() || row.input_tok_ids.size() == static_cast<std::size_t>(row.input_toks));
  for (const TokenId id : row.input_tok_ids) Require(id >= 0 && id < kVocabSize);
}

void TryParse(const std::string& bytes, const WorkloadOptions& options) {
  try {
    const Workload workload = ParseWorkload(bytes, "fuzz.jsonl", options);
    Require(!workload.rows.empty() || !workload.sessions.empty());
    for (const WorkloadRow& row : workload.rows) CheckRow(row, options.require_token_ids);
    for (const WorkloadSession& session : workload.sessions) {
      Require(!session.turns.empty());
      for (const WorkloadTurn& turn : session.turns) {
        CheckRow(turn.row, options.require_token_ids);
        Require(turn.tool_duration_ns >= 0);
      }
    }
    Require(RequestsOf(workload).size() == static_cast<std::size_t>(workload.NumRequests()));
    Require(!DescribeWorkload(workload).empty());
  } catch (const Error& error) {
    Require(error.code() == ExitCode::kBadInput);
  }
}

}  // namespace

// Whatever the bytes are: a workload that keeps its promises, or an Error for bad input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  TryParse(bytes, {.vocab_size = kVocabSize});
  TryParse(bytes, {.num_reqs = 2, .require_token_ids = false, .vocab_size = kVocabSize});
  TryParse(bytes, {.sessions = SessionRule::kSkip, .vocab_size = kVocabSize});
  return 0;
}
