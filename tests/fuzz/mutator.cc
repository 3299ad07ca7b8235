#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace plumbline {
namespace {

// What parsers of text formats trip over: numbers at and beyond every limit, and the characters of the
// formats.
constexpr std::array<std::string_view, 20> kNumbers = {"-1",
                                                       "0",
                                                       "-0",
                                                       "1e400",
                                                       "-1e-400",
                                                       "1e308",
                                                       "NaN",
                                                       "nan",
                                                       "Infinity",
                                                       "-inf",
                                                       "2147483648",
                                                       "4294967296",
                                                       "9223372036854775807",
                                                       "9223372036854775808",
                                                       "18446744073709551616",
                                                       "0x10",
                                                       "1.",
                                                       ".5",
                                                       "007",
                                                       ""};
constexpr std::array<std::string_view, 20> kTokens = {"\"",
                                                      ",",
                                                      ":",
                                                      "{",
                                                      "}",
                                                      "[",
                                                      "]",
                                                      "\n",
                                                      "\r\n",
                                                      "\\",
                                                      "null",
                                                      "true",
                                                      "\\u0000",
                                                      "\\ud800",
                                                      std::string_view("\0", 1),
                                                      "\xff",
                                                      "\xef\xbb\xbf",
                                                      "\x1b[1m",
                                                      "[[[[[[[[[[[[[[[[",
                                                      " "};

constexpr std::size_t kLargestInput = 1 << 16;

bool IsNumberCharacter(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+';
}

}  // namespace

Mutator::Mutator(std::vector<std::string> seeds, std::uint64_t seed)
    : seeds_(std::move(seeds)), state_(seed) {}

std::string Mutator::Next() {
  std::string input = seeds_[Below(seeds_.size())];
  const std::size_t rounds = 1 + Below(6);
  for (std::size_t i = 0; i < rounds; ++i) MutateOnce(input);
  if (input.size() > kLargestInput) input.resize(kLargestInput);
  return input;
}

// splitmix64: the standard library's engines are portable, its distributions are not.
std::uint64_t Mutator::Random() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::size_t Mutator::Below(std::size_t limit) {
  return limit == 0 ? 0 : Random() % limit;
}

void Mutator::MutateOnce(std::string& input) {
  const std::size_t at = Below(input.size());
  const std::size_t length = 1 + Below(std::min<std::size_t>(input.size() - at, 64));
  switch (Below(9)) {
    case 0:
      if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << Below(8)));
      break;
    case 1:
      if (!input.empty()) input[at] = static_cast<char>(Below(256));
      break;
    case 2:
      input.insert(at, kTokens[Below(kTokens.size())]);
      break;
    case 3:
      input.erase(at, length);
      break;
    case 4:
      input.insert(at, input.substr(at, length));
      break;
    case 5:
      input.resize(at);
      break;
    case 6: {
      const std::string& other = seeds_[Below(seeds_.size())];
      input = input.substr(0, at) + other.substr(Below(other.size()));
      break;
    }
    default:
      ReplaceNumber(input);
  }
}

// Twice as likely as the others: in text formats most mistakes are about numbers.
void Mutator::ReplaceNumber(std::string& input) {
  const auto start = input.begin() + static_cast<std::ptrdiff_t>(Below(input.size()));
  auto first = std::find_if(start, input.end(), IsNumberCharacter);
  if (first == input.end()) first = std::find_if(input.begin(), input.end(), IsNumberCharacter);
  const auto last = std::find_if_not(first, input.end(), IsNumberCharacter);
  const std::string_view number = kNumbers[Below(kNumbers.size())];
  input.replace(first, last, number.begin(), number.end());
}

}  // namespace plumbline
