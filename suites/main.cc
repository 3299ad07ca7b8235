// plumb_suites: every example as a registered benchmark. Listing them reads file names and nothing else.
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/api/registry.h"
#include "engine/parallel/device_probe_client.h"
#include "engine/scripted/scripted_engine.h"
#include "engine/vllm/vllm_engine.h"
#include "fixtures/closed_loop.h"
#include "fixtures/golden_suite.h"
#include "fixtures/profile/simulated_kind.h"
#include "fixtures/serving_example.h"
#include "fixtures/suite_main.h"

namespace {

using plumbline::EngineRegistry;
using plumbline::ExampleContext;
using plumbline::SuiteExample;

// PLUMBLINE_SUITES_PATH: another folder of the same form, for tests and for suites of someone else's.
std::string SuitesRoot() {
  const char* path = std::getenv("PLUMBLINE_SUITES_PATH");
  return path == nullptr ? PLUMBLINE_SUITES_DIR : path;
}

std::string WhyAbsent(const std::string& need) {
  if (need != "gpu") return "";
  const plumbline::DeviceReport report = plumbline::AskDeviceProbe();
  return report.devices.empty() ? report.reason : "";
}

// PLUMBLINE_NOISE=skip: what only noise made invalid is a named skip, for machines that are shared.
plumbline::ClosedLoopOptions LoopOptions() {
  const char* noise = std::getenv("PLUMBLINE_NOISE");
  const bool skips = noise != nullptr && std::string(noise) == "skip";
  // A machine that is known to be shared is not asked a third time.
  return {.cache_folder = PLUMBLINE_PROFILE_CACHE, .noise_skips = skips, .most_attempts = skips ? 2 : 3};
}

void AddServingExamples(const std::string& need, EngineRegistry& engines,
                        std::vector<SuiteExample>& examples) {
  const std::string root = SuitesRoot();
  for (const std::string& name : plumbline::FindServingExamples(root, need)) {
    examples.push_back({name, {need}, [root, name, &engines](const ExampleContext& context) {
                          return RunClosedLoop(plumbline::ReadServingExample(root, name), engines, WhyAbsent,
                                               context, LoopOptions());
                        }});
  }
}

std::vector<SuiteExample> AllExamples(EngineRegistry& engines) {
  std::vector<SuiteExample> examples = plumbline::GoldenSuite(PLUMBLINE_GOLDEN_DIR);
  for (const char* need : {"cpu", "gpu", "vllm", "endpoint"}) AddServingExamples(need, engines, examples);
  return examples;
}

}  // namespace

int main(int argc, char** argv) {
  EngineRegistry engines;
  plumbline::RegisterScriptedEngine(engines);
  plumbline::RegisterSimulatedEngine(engines);
  plumbline::RegisterVllmEngine(engines);
  engines.AddDefaultPluginFolders();
  return plumbline::SuiteMain(argc, argv, [&engines] { return AllExamples(engines); });
}
