#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumbline {

// The draws of Python's `random` module (CPython 3, Mersenne Twister MT19937 of Matsumoto and Nishimura,
// seeded by array), for the policies of the reference that draw lots: the same seed gives the same lots.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed);

  // randrange(count): 0 <= result < count. `count` is 1 to 2^32 - 1.
  std::uint32_t Below(std::uint32_t count);

  // sample(range(count), size): different numbers below `count`, in the order drawn. 0 < size <= count.
  std::vector<std::uint32_t> Sample(std::uint32_t count, std::uint32_t size);

 private:
  static constexpr std::size_t kWords = 624;

  void Seed(std::uint32_t seed);
  void Refill();
  std::uint32_t Next();

  std::array<std::uint32_t, kWords> state_{};
  std::size_t next_ = kWords;
};

}  // namespace plumbline
