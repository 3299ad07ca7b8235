#include "engine/base/json.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/error.h"
#include "engine/base/files.h"

namespace plumbline {
namespace {

std::int64_t LinesBefore(std::string_view text, std::size_t byte) {
  return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size())),
                    '\n');
}

void RejectNonFinite(const Json& value, const std::string& path) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    throw std::logic_error("a non-finite number reached the JSON writer at '" + path + "'");
  }
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) RejectNonFinite(member, path + "." + key);
  } else if (value.is_array()) {
    for (const auto& member : value) RejectNonFinite(member, path + "[]");
  }
}

// Deeper nesting than any file of ours or of others needs; without a limit a hostile file overflows the stack
// of whoever walks the value.
constexpr int kDeepestNesting = 200;

void RejectDeepNesting(std::string_view text, const std::string& file, std::int64_t first_line) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestNesting) {
        ThrowBadInput({.file = file,
                       .line = first_line + LinesBefore(text, i),
                       .problem = fmt::format("is JSON nested deeper than {} levels", kDeepestNesting)});
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace

Json ParseJson(std::string_view text, const std::string& file, std::int64_t first_line) {
  RejectDeepNesting(text, file, first_line);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    const std::size_t byte = error.byte > 0 ? error.byte - 1 : 0;
    std::string what = error.what();
    // The library's text starts with its own code and position; the reader wants the reason only.
    if (const auto colon = what.find(": ", what.find("parse error")); colon != std::string::npos) {
      what = what.substr(colon + 2);
    }
    ThrowBadInput({.file = file,
                   .line = first_line + LinesBefore(text, byte),
                   .value = std::string(text.substr(byte, 40)),
                   .problem = fmt::format("is not valid JSON at byte {}: {}", byte, what)});
  } catch (const Json::exception& error) {  // a number out of range, nesting too deep
    ThrowBadInput(
        {.file = file, .line = first_line, .problem = std::string("is not valid JSON: ") + error.what()});
  }
}

Json ReadJsonFile(const std::string& path) {
  return ParseJson(ReadFile(path), path);
}

std::string PrintJson(const Json& value) {
  RejectNonFinite(value, "");
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

JsonView::JsonView(const Json& value, std::string file, std::int64_t line, std::string path)
    : value_(&value), file_(std::move(file)), line_(line), path_(std::move(path)) {}

void JsonView::Fail(const std::string& problem, const std::string& accepted) const {
  ThrowBadInput({.file = file_,
                 .line = line_,
                 .field = path_,
                 .value = value_->dump(-1, ' ', false, Json::error_handler_t::replace),
                 .problem = problem,
                 .accepted = accepted});
}

void JsonView::RequireObject() const {
  if (!value_->is_object()) Fail("must be a JSON object");
}

JsonView JsonView::Member(const std::string& key) const {
  RequireObject();
  const std::string path = path_.empty() ? key : path_ + "." + key;
  const auto found = value_->find(key);
  if (found == value_->end()) {
    ThrowBadInput({.file = file_, .line = line_, .field = path, .problem = "is missing"});
  }
  return JsonView(*found, file_, line_, path);
}

bool JsonView::Has(const std::string& key) const {
  RequireObject();
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonView JsonView::Object(const std::string& key) const {
  JsonView member = Member(key);
  member.RequireObject();
  return member;
}
std::vector<JsonView> JsonView::Array(const std::string& key) const {
  return Member(key).AsArray();
}
std::string JsonView::String(const std::string& key) const {
  return Member(key).AsString();
}
std::int64_t JsonView::Int(const std::string& key) const {
  return Member(key).AsInt();
}
double JsonView::Double(const std::string& key) const {
  return Member(key).AsDouble();
}
bool JsonView::Bool(const std::string& key) const {
  return Member(key).AsBool();
}

std::uint64_t JsonView::UInt(const std::string& key) const {
  const JsonView member = Member(key);
  if (member.value_->is_number_unsigned()) return member.value_->get<std::uint64_t>();
  const std::int64_t value = member.AsInt();
  if (value < 0) member.Fail("must not be negative");
  return static_cast<std::uint64_t>(value);
}

std::optional<JsonView> JsonView::MaybeObject(const std::string& key) const {
  return Has(key) ? std::optional(Object(key)) : std::nullopt;
}
std::optional<std::vector<JsonView>> JsonView::MaybeArray(const std::string& key) const {
  return Has(key) ? std::optional(Array(key)) : std::nullopt;
}
std::optional<std::string> JsonView::MaybeString(const std::string& key) const {
  return Has(key) ? std::optional(String(key)) : std::nullopt;
}
std::optional<std::int64_t> JsonView::MaybeInt(const std::string& key) const {
  return Has(key) ? std::optional(Int(key)) : std::nullopt;
}
std::optional<double> JsonView::MaybeDouble(const std::string& key) const {
  return Has(key) ? std::optional(Double(key)) : std::nullopt;
}
std::optional<bool> JsonView::MaybeBool(const std::string& key) const {
  return Has(key) ? std::optional(Bool(key)) : std::nullopt;
}

std::string JsonView::AsString() const {
  if (!value_->is_string()) Fail("must be a string");
  return value_->get<std::string>();
}

std::int64_t JsonView::AsInt() const {
  if (value_->is_number_unsigned()) {
    const auto value = value_->get<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) Fail("is too large");
    return static_cast<std::int64_t>(value);
  }
  if (value_->is_number_integer()) return value_->get<std::int64_t>();
  if (value_->is_number_float()) {
    const double value = value_->get<double>();
    if (std::isfinite(value) && value == std::floor(value) && std::abs(value) <= 9007199254740992.0) {
      return static_cast<std::int64_t>(value);
    }
  }
  Fail("must be an integer");
}

double JsonView::AsDouble() const {
  if (!value_->is_number()) Fail("must be a number");
  const double value = value_->get<double>();
  if (!std::isfinite(value)) Fail("must be a finite number");
  return value;
}

bool JsonView::AsBool() const {
  if (!value_->is_boolean()) Fail("must be true or false");
  return value_->get<bool>();
}

std::vector<JsonView> JsonView::AsArray() const {
  if (!value_->is_array()) Fail("must be an array");
  std::vector<JsonView> members;
  members.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    members.emplace_back((*value_)[i], file_, line_, fmt::format("{}[{}]", path_, i));
  }
  return members;
}

std::vector<std::int32_t> JsonView::AsInt32Array() const {
  if (!value_->is_array()) Fail("must be an array of integers");
  std::vector<std::int32_t> numbers;
  numbers.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    const JsonView member((*value_)[i], file_, line_, fmt::format("{}[{}]", path_, i));
    const std::int64_t number = member.AsInt();
    if (number < std::numeric_limits<std::int32_t>::min() ||
        number > std::numeric_limits<std::int32_t>::max()) {
      member.Fail("does not fit in 32 bits");
    }
    numbers.push_back(static_cast<std::int32_t>(number));
  }
  return numbers;
}

void JsonView::RejectUnknownKeys(const std::vector<std::string>& known) const {
  RequireObject();
  for (const auto& [key, unused] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      std::string list;
      for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
      Fail("has the unknown key '" + key + "'", list);
    }
  }
}

}  // namespace plumbline
