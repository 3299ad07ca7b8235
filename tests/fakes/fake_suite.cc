// A suite program whose examples end as their names say, for the tests of suite_main and serving_fixture.
#include <filesystem>
#include <fstream>

#include "engine/base/error.h"
#include "fixtures/suite_main.h"

using plumbline::Error;
using plumbline::ExampleContext;
using plumbline::ExampleOutcome;
using plumbline::ExitCode;
using plumbline::SuiteExample;

namespace {

SuiteExample Example(const std::string& name, ExampleOutcome outcome, std::vector<std::string> needs = {}) {
  return {name, std::move(needs), [outcome](const ExampleContext& context) {
            std::filesystem::create_directories(context.run_folder);
            std::ofstream(context.run_folder + "/ran") << "yes";
            return outcome;
          }};
}

SuiteExample Throwing(const std::string& name, ExitCode code, std::vector<std::string> needs = {}) {
  return {name, std::move(needs),
          [code](const ExampleContext&) -> ExampleOutcome { throw Error(code, "the reason"); }};
}

}  // namespace

int main(int argc, char** argv) {
  const ExampleOutcome pass{.summary = "pass", .counters = {{"ttft_mean_ms", 12.5}}, .seconds = 0.25};
  const ExampleOutcome regressed{.code = ExitCode::kRegressed,
                                 .summary = "regressed",
                                 .report = "ttft mean: run 13, golden 10",
                                 .counters = {{"ttft_mean_ms", 13}},
                                 .seconds = 0.5};
  return plumbline::SuiteMain(argc, argv, [&] {
    return std::vector<SuiteExample>{
        Example("fake/pass", pass),
        Example("fake/regressed", regressed),
        Throwing("fake/bad_input", ExitCode::kBadInput),
        Throwing("fake/engine_failed", ExitCode::kEngineFailed),
        Throwing("fake/invalid", ExitCode::kInvalid),
        Throwing("fake/skipped", ExitCode::kSkipped, {"gpu"}),
    };
  });
}
