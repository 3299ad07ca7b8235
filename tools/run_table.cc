#include "tools/run_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "fixtures/judge/metrics.h"

namespace plumbline {
namespace {

std::string Cell(std::optional<double> value) {
  return value ? fmt::format("{:>10.1f}", *value) : fmt::format("{:>10}", "-");
}

std::string Row(const char* name, const Sample& sample) {
  return fmt::format("{:<14}{}{}{}{}\n", name, Cell(sample.Mean()), Cell(sample.Quantile(0.5)),
                     Cell(sample.Quantile(0.9)), Cell(sample.Quantile(0.99)));
}

}  // namespace

std::string FormatRunTable(const ServedRun& run) {
  const Metrics metrics = MeasureRun(run.record, Anchor::kAuto);
  std::string text = fmt::format("{:<14}{:>10}{:>10}{:>10}{:>10}\n", "", "mean", "P50", "P90", "P99");
  text += Row("TTFT (ms)", metrics.ttft_ms);
  text += Row("TPOT (ms)", metrics.tpot_ms);
  text += Row("Latency (ms)", metrics.latency_ms);

  std::int64_t generated = 0;
  for (const RequestRecord& request : run.record.requests) generated += request.generated_toks.value_or(0);
  const double seconds = static_cast<double>(run.replay.end_ns - run.replay.start_ns) / kNsPerSecond;
  if (seconds > 0) {
    text += fmt::format("{} requests in {:.2f} s: {:.2f} requests/s, {:.1f} output tokens/s\n",
                        metrics.counts.total, seconds, static_cast<double>(metrics.counts.measured) / seconds,
                        static_cast<double>(generated) / seconds);
  }
  const std::int64_t preemptions = run.end.preemptions;
  if (preemptions > 0) text += fmt::format("{} preemptions\n", preemptions);
  const std::int64_t unserved = metrics.counts.total - metrics.counts.measured;
  if (unserved > 0) {
    text += fmt::format("{} of {} requests were not served\n", unserved, metrics.counts.total);
    for (const RequestRecord& request : run.record.requests) {
      if (request.error.empty()) continue;
      text += fmt::format("  the first: {}: {}\n", request.request_id, request.error);
      break;
    }
  }
  text += fmt::format("counted from: {}; client lag: mean {:.3f} ms, at most {:.3f} ms\n",
                      metrics.AnchorName(), run.replay.client_lag.mean_ns / 1e6,
                      static_cast<double>(run.replay.client_lag.max_ns) / 1e6);
  return text;
}

}  // namespace plumbline
