#include "tests/fakes/full_run.h"

#include <algorithm>

#include "fixtures/run/run_writer.h"

namespace plumbline {
namespace {

RunMeta FullMeta() {
  RunMeta meta;
  meta.present = true;
  meta.model = "org/model";
  meta.engine = "torch";
  meta.engine_version = "0.1.0";
  meta.vllm_version = "0.19.0";
  meta.tensor_parallel_size = 2;
  meta.data_parallel_size = 3;
  meta.max_num_seqs = 64;
  meta.max_num_batched_tokens = 512;
  meta.dtype = "float32";
  meta.kv_cache_dtype = "auto";
  meta.dataset_path = "workloads/a.jsonl";
  meta.dataset_hash = std::string(64, 'a');
  meta.num_requests = 2;
  meta.started_at = "2026-04-25T18:49:44.514072Z";
  meta.finished_at = "2026-04-25T18:52:25.493672Z";
  meta.tick_seconds = 0.5;
  meta.kind = RunKind::kDiagnostic;
  meta.pacing = Pacing::kPaced;
  meta.status = RunStatus::kFailed;
  meta.status_reason = "two requests failed";
  meta.kv_capacity.per_engine = {{0, 100, 16, 1600, 2, 1, 3, 2}, {1, 101, 32, std::nullopt, 2, 1, 3, 2}};
  meta.num_gpu_blocks = 201;
  meta.block_size = 16;
  meta.enable_prefix_caching = true;
  meta.device_name = "a device";
  meta.clock_start = {1777142838.5, 100.25, 100.250001};
  meta.clock_end = {1777142938.5, 200.25, 200.250002};
  meta.context.build_type = "Release";
  meta.context.commit = "5daddb2";
  meta.context.dirty = true;
  meta.context.hostname = "host";
  meta.context.cores = 2;
  meta.context.involuntary_context_switches_per_s = 1.5;
  meta.context.load_average_1m = 0.25;
  meta.context.steal_s = 0.125;
  meta.context.governor = "performance";
  meta.context.library_versions = {{"torch", "1.13"}, {"onednn", "2.6"}};
  meta.output_ids_sha256 = std::string(64, 'b');
  meta.warnings = {"a slow BLAS"};
  meta.engine_kwargs_json =
      R"({"model":"org/model","tensor_parallel_size":2,"data_parallel_size":3,"max_num_seqs":64,)"
      R"("max_num_batched_tokens":512,"dtype":"float32","kv_cache_dtype":"auto","seed":42})";
  meta.kv_cache_json =
      R"({"num_gpu_blocks":201,"block_size":16,"enable_prefix_caching":true,"capacity":{"schema":1,)"
      R"("status":"complete","per_engine":[{"data_parallel_rank":0,"num_gpu_blocks":100,"block_size":16,)"
      R"("kv_cache_size_tokens":1600,"tensor_parallel_size":2,"pipeline_parallel_size":1,)"
      R"("data_parallel_size":3,"world_size":2},{"data_parallel_rank":1,"num_gpu_blocks":101,)"
      R"("block_size":32,"kv_cache_size_tokens":null,"tensor_parallel_size":2,"pipeline_parallel_size":1,)"
      R"("data_parallel_size":3,"world_size":2}],"reason":null}})";
  meta.hardware_json = R"({"device_name":"a device","device_count":1})";
  meta.resolved_config_json = R"({"cache_config":{"block_size":16}})";
  meta.execution_json = R"({"status":"unknown","reason":"eager"})";
  meta.phases_json = R"({"warmup":{"requests":3}})";
  return meta;
}

RequestRecord FullRequest(std::int64_t row) {
  const auto base = static_cast<double>(row);
  RequestRecord request;
  request.request_id = "bench-" + std::to_string(row);
  request.row = row;
  request.input_toks = 5;
  request.output_toks = 3;
  request.arrival_time = 1787267980.0827403 + base;
  request.queued_ts = 27536.660701067 + base;
  request.scheduled_ts = 27536.660721646 + base;
  request.first_token_ts = 27536.7 + base;
  request.last_token_ts = 27536.9 + base;
  request.generated_toks = 2;
  request.due_ts = 27536.5 + base;
  request.sent_ts = 27536.55 + base;
  request.departed_ts = 27536.56 + base;
  request.permit_wait_s = 0.125;
  request.retries = 1;
  request.cached_toks = 4;
  request.preemptions = 6;
  request.finish_reason = "error";
  request.session_id = "session \"1\"";
  request.turn = 2;
  request.stamp_source = "engine";
  request.error = "broken\noff";
  return request;
}

}  // namespace

RunRecord FullRun() {
  RunRecord run;
  run.meta = FullMeta();
  run.requests = {FullRequest(0), FullRequest(1)};
  run.timeseries = {{0.5, 1.5, 2.5, 3.5, 4.5, 5, 6, 7, 8.25}, {}};
  run.timeseries[1].t = 1;
  return run;
}

std::vector<StepRow> FullSteps() {
  return {{100.5, 0.25, 1, 2, 3, 4, 5, 6}, {100.75, 0.125, 0, 8, 9, 10, 11, 12}};
}

RunRecord SoundRun(int requests) {
  RunRecord run;
  run.meta = FullMeta();
  run.meta.kind = RunKind::kServing;
  run.meta.pacing = Pacing::kDataset;
  run.meta.status = RunStatus::kComplete;
  run.meta.status_reason.clear();
  run.meta.num_requests = requests;
  for (int row = 0; row < requests; ++row) {
    const double arrival = row * 0.1;
    RequestRecord& request = run.requests.emplace_back();
    request.request_id = "bench-" + std::to_string(row);
    request.row = row;
    request.input_toks = 16;
    request.output_toks = 11;
    request.generated_toks = 11;
    request.due_ts = request.sent_ts = request.queued_ts = arrival;
    request.scheduled_ts = arrival + 0.001;
    request.first_token_ts = arrival + 0.05;
    request.last_token_ts = arrival + 0.15;
    request.finish_reason = "length";
    request.stamp_source = "engine";
  }
  const int ticks = std::max(1, requests / 10);
  for (int tick = 1; tick <= ticks; ++tick) {
    run.timeseries.push_back({static_cast<double>(tick), 160, 160, 0, 110, 2, 0, 0, 1.5});
  }
  return run;
}

void WriteRun(const std::string& folder, const RunRecord& run, const std::vector<StepRow>& steps) {
  RunWriter writer(folder);
  writer.Start(run.meta);
  writer.AppendRequests(run.requests);
  writer.AppendTimeseries(run.timeseries);
  writer.AppendSteps(steps);
  writer.Finish(run.meta);
}

}  // namespace plumbline
