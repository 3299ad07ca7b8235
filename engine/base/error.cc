#include "engine/base/error.h"

#include <fmt/format.h>

namespace plumbline {
namespace {

constexpr std::size_t kLongestValue = 80;

// Control characters of a binary file would garble the terminal, so they are shown as escapes.
std::string Printable(const std::string& value) {
  std::string out;
  for (unsigned char c : value.substr(0, kLongestValue)) {
    if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  if (value.size() > kLongestValue) out += "...";
  return out;
}

}  // namespace

std::string Describe(const BadInput& bad) {
  std::string text = bad.file;
  if (bad.line > 0) text += fmt::format(":{}", bad.line);
  if (!text.empty()) text += ": ";
  if (!bad.field.empty()) text += bad.field + ": ";
  text += bad.problem;
  std::string detail;
  if (!bad.value.empty()) detail = fmt::format("got \"{}\"", Printable(bad.value));
  if (!bad.accepted.empty()) {
    if (!detail.empty()) detail += "; ";
    detail += "accepted: " + bad.accepted;
  }
  if (!detail.empty()) text += " (" + detail + ")";
  return text;
}

void ThrowBadInput(const BadInput& bad) {
  throw Error(ExitCode::kBadInput, Describe(bad));
}

}  // namespace plumbline
