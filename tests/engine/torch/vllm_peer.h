#pragma once

#include <memory>
#include <string>

#include "tests/engine/torch/throughput_workload.h"

namespace plumbline {

// vLLM with the throughput workload, compiled and bound to cores 0 and 1, in a child process that runs
// vllm_peer.py.
class VllmPeer {
 public:
  // Boots it: about half a minute. Throws std::runtime_error when it does not come up.
  VllmPeer(const std::string& python, const std::string& model_folder, const std::string& dtype);
  ~VllmPeer();
  ThroughputRun Run();

 private:
  struct Child;
  std::unique_ptr<Child> child_;
};

}  // namespace plumbline
