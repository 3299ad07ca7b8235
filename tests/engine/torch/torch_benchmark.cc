// Figures of the built-in engine on the throughput workload, beside vLLM's where a Python with vLLM is given.
// Figures, not gates: it fails only when something does not run.

#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>

#include "tests/engine/torch/throughput_workload.h"
#include "tests/engine/torch/vllm_peer.h"

namespace plumbline {
namespace {

double ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) * 1e-6;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// "median [least-most]" of one figure.
template <typename Get>
std::string Spread(const std::vector<ThroughputRun>& runs, const char* format, Get get) {
  std::vector<double> values;
  for (const ThroughputRun& run : runs) values.push_back(get(run));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const auto text = [&](double value) { return fmt::format(fmt::runtime(format), value); };
  return text(Median(values)) + " [" + text(*least) + "-" + text(*most) + "]";
}

void PrintRuns(const std::string& engine, const std::string& dtype, const std::vector<ThroughputRun>& runs) {
  fmt::print("{:<10} {:<9} {:>24} out tok/s   TTFT {} ms   TPOT {} ms\n", engine, dtype,
             Spread(runs, "{:.0f}", [](const ThroughputRun& run) { return run.output_tokens_per_s; }),
             Spread(runs, "{:.0f}", [](const ThroughputRun& run) { return run.ttft_ms; }),
             Spread(runs, "{:.2f}", [](const ThroughputRun& run) { return run.tpot_ms; }));
}

void PrintShares(const std::vector<ThroughputRun>& runs) {
  StepTimes sum;
  for (const ThroughputRun& run : runs) {
    sum.products_ns += run.times.products_ns;
    sum.attention_ns += run.times.attention_ns;
    sum.rest_ns += run.times.rest_ns;
  }
  const auto total = static_cast<double>(sum.products_ns + sum.attention_ns + sum.rest_ns);
  const auto share = [total](TimeNs part) { return 100 * static_cast<double>(part) / total; };
  fmt::print("{:<20} a step's time: products {:.0f} %, attention {:.0f} %, rest {:.0f} %\n", "",
             share(sum.products_ns), share(sum.attention_ns), share(sum.rest_ns));
}

void Measure(const std::string& model, const std::string& dtype, int threads, int repeats,
             const std::string& peer_python) {
  ThroughputEngine engine(model, dtype == "float32" ? cpu::Dtype::kFloat32 : cpu::Dtype::kBFloat16, threads);
  std::unique_ptr<VllmPeer> peer;
  if (!peer_python.empty()) peer = std::make_unique<VllmPeer>(peer_python, model, dtype);
  engine.Run();
  if (peer) peer->Run();
  std::vector<ThroughputRun> ours;
  std::vector<ThroughputRun> theirs;
  std::vector<ThroughputRun> ratios;
  for (int i = 0; i < repeats; ++i) {  // interleaved: both see the same disturbances of the machine
    ours.push_back(engine.Run());
    if (!peer) continue;
    theirs.push_back(peer->Run());
    ratios.push_back(
        {.output_tokens_per_s = ours.back().output_tokens_per_s / theirs.back().output_tokens_per_s,
         .times = {}});
  }
  PrintRuns("plumbline", dtype, ours);
  PrintShares(ours);
  fmt::print("{:<20} resident memory {:.0f} MB, 1 GiB of it KV cache\n", "", ResidentMegabytes());
  if (!peer) return;
  PrintRuns("vllm", dtype, theirs);
  fmt::print("{:<20} plumbline / vllm: {}\n", "",
             Spread(ratios, "{:.2f}", [](const ThroughputRun& run) { return run.output_tokens_per_s; }));
}

int Main(int argc, char** argv) {
  CLI::App app(
      "The built-in engine on the throughput workload: 64 requests at once, 128 in, 64 out, 16 running");
  std::string model = std::string(PLUMBLINE_SOURCE_DIR) + "/suites/models/llama-29m";
  std::string peer_python;
  std::vector<std::string> dtypes = {"float32", "bfloat16"};
  int repeats = 3;
  int threads = omp_get_max_threads();
  app.add_option("--model", model, "Model folder; dummy weights")->capture_default_str();
  app.add_option("--dtype", dtypes, "float32, bfloat16")->check(CLI::IsMember({"float32", "bfloat16"}));
  app.add_option("--repeats", repeats, "Runs of each, interleaved")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--threads", threads, "Of a step")->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--peer-python", peer_python, "A Python with vLLM, measured beside")
      ->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  if (peer_python.empty()) fmt::print("vllm skipped: no --peer-python\n");
  for (const std::string& dtype : dtypes) Measure(model, dtype, threads, repeats, peer_python);
  return 0;
}

}  // namespace
}  // namespace plumbline

int main(int argc, char** argv) {
  try {
    return plumbline::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "torch_benchmark: {}\n", error.what());
    return 5;
  }
}
