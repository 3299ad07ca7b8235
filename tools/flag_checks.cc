#include "tools/flag_checks.h"

#include <charconv>
#include <cmath>
#include <string>

namespace plumbline {
namespace {

// The whole text as a number; false when it is something else or does not fit.
template <typename Number>
bool ParseWhole(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end;
}

}  // namespace

CLI::Validator AtLeast(std::int64_t least) {
  return CLI::Validator(
      [least](const std::string& text) -> std::string {
        std::int64_t number = 0;
        if (ParseWhole(text, number) && number >= least) return "";
        return "must be an integer of at least " + std::to_string(least) + " (got \"" + text + "\")";
      },
      "");
}

CLI::Validator PositiveNumber() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        double number = 0;
        if (ParseWhole(text, number) && std::isfinite(number) && number > 0) return "";
        return "must be a finite number above 0 (got \"" + text + "\")";
      },
      "");
}

}  // namespace plumbline
