#include "engine/simulated/python_random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace plumbline {

PythonRandom::PythonRandom(std::uint32_t seed) {
  Seed(seed);
}

// MT19937's seeding by an array of one word, which is what an integer seed below 2^32 is to Python.
void PythonRandom::Seed(std::uint32_t seed) {
  state_[0] = 19650218;
  for (std::size_t i = 1; i < kWords; ++i) {
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + static_cast<std::uint32_t>(i);
  }
  const auto mixed = [this](std::size_t i) { return state_[i - 1] ^ (state_[i - 1] >> 30); };
  std::size_t i = 1;
  const auto advance = [&] {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  };
  for (std::size_t round = 0; round < kWords; ++round) {
    state_[i] = (state_[i] ^ (mixed(i) * 1664525U)) + seed;
    advance();
  }
  for (std::size_t round = 1; round < kWords; ++round) {
    state_[i] = (state_[i] ^ (mixed(i) * 1566083941U)) - static_cast<std::uint32_t>(i);
    advance();
  }
  state_[0] = 0x80000000U;
  next_ = kWords;
}

void PythonRandom::Refill() {
  constexpr std::size_t kShift = 397;
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint32_t joined = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
    state_[i] = state_[(i + kShift) % kWords] ^ (joined >> 1) ^ ((joined & 1U) != 0 ? 0x9908b0dfU : 0U);
  }
  next_ = 0;
}

std::uint32_t PythonRandom::Next() {
  if (next_ == kWords) Refill();
  std::uint32_t word = state_[next_++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680U;
  word ^= (word << 15) & 0xefc60000U;
  return word ^ (word >> 18);
}

// As many high bits as `count` has, drawn again until they are below it.
std::uint32_t PythonRandom::Below(std::uint32_t count) {
  const int bits = std::bit_width(count);
  for (;;) {
    const std::uint32_t drawn = Next() >> (32 - bits);
    if (drawn < count) return drawn;
  }
}

// CPython swaps in a list when the population is small against the sample, and draws again what it has drawn
// before when it is large; which of the two decides the lots.
std::vector<std::uint32_t> PythonRandom::Sample(std::uint32_t count, std::uint32_t size) {
  double list_up_to = 21;
  if (size > 5) list_up_to += std::pow(4.0, std::ceil(std::log(size * 3.0) / std::log(4.0)));
  std::vector<std::uint32_t> sample;
  if (count <= list_up_to) {
    std::vector<std::uint32_t> left(count);
    std::iota(left.begin(), left.end(), 0U);
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t place = Below(count - i);
      sample.push_back(left[place]);
      left[place] = left[count - i - 1];
    }
    return sample;
  }
  while (sample.size() < size) {
    const std::uint32_t drawn = Below(count);
    if (std::find(sample.begin(), sample.end(), drawn) == sample.end()) sample.push_back(drawn);
  }
  return sample;
}

}  // namespace plumbline
