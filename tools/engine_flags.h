#pragma once

#include <string>
#include <vector>

#include "engine/api/engine_spec.h"

namespace CLI {
class App;
}

namespace plumbline {

// The engine flags as they stand on the command line, with the names and defaults of the reference harness.
// The object must outlive the parse.
class EngineFlags {
 public:
  explicit EngineFlags(CLI::App& command);

  // After the parse. Throws Error(kBadInput) for an --engine-arg that is not KEY=VALUE or is given twice.
  EngineSpec Spec() const;

 private:
  EngineSpec spec_;
  std::vector<std::string> engine_args_;
};

}  // namespace plumbline
