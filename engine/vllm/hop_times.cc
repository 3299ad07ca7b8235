#include "engine/vllm/hop_times.h"

#include <algorithm>
#include <numeric>

#include "engine/base/json.h"

namespace plumbline {

std::string HopTimes::Json() const {
  if (hops_ns_.empty()) return "";
  std::vector<TimeNs> sorted = hops_ns_;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](std::size_t percent) {
    return static_cast<double>(sorted[(sorted.size() - 1) * percent / 100]) / 1000;
  };
  const double sum = static_cast<double>(std::accumulate(sorted.begin(), sorted.end(), TimeNs{0})) / 1000;
  return PrintJson(plumbline::Json{{"submission_hop",
                                    {{"count", sorted.size()},
                                     {"mean_us", sum / static_cast<double>(sorted.size())},
                                     {"p50_us", at(50)},
                                     {"p99_us", at(99)},
                                     {"max_us", at(100)}}}});
}

}  // namespace plumbline
