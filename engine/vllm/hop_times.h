#pragma once

#include <string>
#include <vector>

#include "engine/clock/clock.h"

namespace plumbline {

// How long submissions took from Submit to the worker having read them: what the extra process costs.
class HopTimes {
 public:
  void Add(TimeNs hop_ns) { hops_ns_.push_back(hop_ns); }

  // {"submission_hop": {count, mean_us, p50_us, p99_us, max_us}} as text; empty when nothing was sent.
  std::string Json() const;

 private:
  std::vector<TimeNs> hops_ns_;
};

}  // namespace plumbline
