#include "tests/engine/torch/vllm_peer.h"

#include <boost/process.hpp>
#include <sstream>
#include <stdexcept>

namespace plumbline {
namespace {

namespace process = boost::process;

// vLLM writes its log to standard output as well; our script's lines carry this mark.
constexpr const char* kMark = "plumbline ";

}  // namespace

struct VllmPeer::Child {
  process::opstream input;
  process::ipstream output;
  process::child child;

  // The rest of the next line of the script.
  std::string Await() {
    std::string line;
    while (std::getline(output, line)) {
      if (line.starts_with(kMark)) return line.substr(std::string(kMark).size());
    }
    throw std::runtime_error("vLLM ended without an answer");
  }
};

VllmPeer::VllmPeer(const std::string& python, const std::string& model_folder, const std::string& dtype)
    : child_(std::make_unique<Child>()) {
  using Shape = ThroughputShape;
  const std::string script = std::string(PLUMBLINE_SOURCE_DIR) + "/tests/engine/torch/vllm_peer.py";
  process::environment environment = boost::this_process::environment();
  environment["VLLM_CPU_OMP_THREADS_BIND"] = "0-1";
  environment["VLLM_CPU_KVCACHE_SPACE"] = "1";
  for (const char* offline :
       {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"}) {
    environment[offline] = "1";
  }
  child_->child = process::child(python, script, model_folder, dtype, std::to_string(Shape::kRequests),
                                 std::to_string(Shape::kInput), std::to_string(Shape::kOutput),
                                 std::to_string(Shape::kMaxNumSeqs), std::to_string(Shape::kBudget),
                                 environment, process::std_in<child_->input, process::std_out> child_->output,
                                 process::std_err > process::null);
  child_->Await();
}

VllmPeer::~VllmPeer() {
  // The end of its input is its sign to shut down; killing it would leave its workers behind.
  child_->input.pipe().close();
  std::error_code ignored;
  child_->child.wait(ignored);
}

ThroughputRun VllmPeer::Run() {
  child_->input << "run" << std::endl;
  std::istringstream answer(child_->Await());
  ThroughputRun run;
  answer >> run.output_tokens_per_s >> run.ttft_ms >> run.tpot_ms;
  if (!answer) throw std::runtime_error("vLLM's answer cannot be read: " + answer.str());
  return run;
}

}  // namespace plumbline
