#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumbline {

// Makes new inputs from seeds: bytes flipped, set, inserted, removed, repeated, cut off; numbers replaced by
// hard ones; two seeds spliced. The same seed number and corpus give the same inputs on any machine.
class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, std::uint64_t seed);

  std::string Next();

 private:
  std::uint64_t Random();
  std::size_t Below(std::size_t limit);  // 0 <= result < limit; 0 when limit is 0
  void MutateOnce(std::string& input);
  void ReplaceNumber(std::string& input);

  const std::vector<std::string> seeds_;
  std::uint64_t state_;
};

}  // namespace plumbline
