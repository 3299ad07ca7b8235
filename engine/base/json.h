#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

using Json = nlohmann::ordered_json;

// Parses strict JSON of at most 200 nested levels. Throws Error(kBadInput) with file, line and column;
// `first_line` is the line of the text's start in the file (JSONL readers pass the row's).
Json ParseJson(std::string_view text, const std::string& file, std::int64_t first_line = 1);
Json ReadJsonFile(const std::string& path);

// Indented by two, a newline at the end. A non-finite number is a bug of the caller and throws
// std::logic_error: strict readers reject a file that holds NaN.
std::string PrintJson(const Json& value);

// Read access that answers every wrong type, range or missing key with file, line, field and value.
// Borrows the Json: the view must not outlive it.
class JsonView {
 public:
  JsonView(const Json& value, std::string file, std::int64_t line = 0, std::string path = "");

  // A member that must be there.
  JsonView Object(const std::string& key) const;
  std::vector<JsonView> Array(const std::string& key) const;
  std::string String(const std::string& key) const;
  std::int64_t Int(const std::string& key) const;    // 1e8 is an integer, 1.5 is not
  std::uint64_t UInt(const std::string& key) const;  // as Int, not negative
  double Double(const std::string& key) const;       // finite
  bool Bool(const std::string& key) const;

  // A member that may be absent or null.
  bool Has(const std::string& key) const;  // present and not null
  std::optional<JsonView> MaybeObject(const std::string& key) const;
  std::optional<std::vector<JsonView>> MaybeArray(const std::string& key) const;
  std::optional<std::string> MaybeString(const std::string& key) const;
  std::optional<std::int64_t> MaybeInt(const std::string& key) const;
  std::optional<double> MaybeDouble(const std::string& key) const;
  std::optional<bool> MaybeBool(const std::string& key) const;

  // The value itself.
  std::string AsString() const;
  std::int64_t AsInt() const;
  double AsDouble() const;
  bool AsBool() const;
  std::vector<JsonView> AsArray() const;
  std::vector<std::int32_t> AsInt32Array() const;
  void RequireObject() const;

  // A member whose name nobody reads is an error that lists the known ones: config keys are never ignored in
  // silence.
  void RejectUnknownKeys(const std::vector<std::string>& known) const;

  const Json& json() const { return *value_; }
  const std::string& file() const { return file_; }
  const std::string& path() const { return path_; }
  std::int64_t line() const { return line_; }

  [[noreturn]] void Fail(const std::string& problem, const std::string& accepted = "") const;

 private:
  JsonView Member(const std::string& key) const;

  const Json* value_;
  std::string file_;
  std::int64_t line_;
  std::string path_;
};

}  // namespace plumbline
