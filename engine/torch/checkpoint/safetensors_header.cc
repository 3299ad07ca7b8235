#include <fmt/format.h>
#include <simdjson.h>
#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>

#include "engine/base/error.h"
#include "engine/torch/checkpoint/safetensors.h"

namespace plumbline {
namespace {

struct ElementType {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array kElementTypes = {
    ElementType{"BOOL", 1},    ElementType{"U8", 1},  ElementType{"I8", 1},  ElementType{"F8_E5M2", 1},
    ElementType{"F8_E4M3", 1}, ElementType{"I16", 2}, ElementType{"U16", 2}, ElementType{"F16", 2},
    ElementType{"BF16", 2},    ElementType{"I32", 4}, ElementType{"U32", 4}, ElementType{"F32", 4},
    ElementType{"F64", 8},     ElementType{"I64", 8}, ElementType{"U64", 8}};

[[noreturn]] void Fail(const std::string& file, const std::string& tensor, const std::string& problem,
                       const std::string& value = "", const std::string& accepted = "") {
  ThrowBadInput({.file = file,
                 .field = tensor.empty() ? "header" : "tensor " + tensor,
                 .value = value,
                 .problem = problem,
                 .accepted = accepted});
}

std::int64_t BytesOfType(const std::string& file, const std::string& tensor, std::string_view dtype) {
  std::string known;
  for (const ElementType& type : kElementTypes) {
    if (type.name == dtype) return type.bytes;
    known += (known.empty() ? "" : ", ") + std::string(type.name);
  }
  Fail(file, tensor, "has an unknown dtype", std::string(dtype), known);
}

std::int64_t AsCount(const std::string& file, const std::string& tensor, simdjson::dom::element element,
                     const char* what) {
  std::int64_t value = 0;
  if (element.get(value) != simdjson::SUCCESS || value < 0) {
    Fail(file, tensor, std::string(what) + " must be integers of at least 0");
  }
  return value;
}

void ReadShape(const std::string& file, simdjson::dom::element element, SafetensorsEntry& entry) {
  simdjson::dom::array shape;
  if (element.get(shape) != simdjson::SUCCESS) Fail(file, entry.name, "shape must be an array");
  for (const simdjson::dom::element size : shape)
    entry.shape.push_back(AsCount(file, entry.name, size, "sizes"));
}

void ReadOffsets(const std::string& file, simdjson::dom::element element, SafetensorsEntry& entry) {
  simdjson::dom::array offsets;
  if (element.get(offsets) != simdjson::SUCCESS || offsets.size() != 2) {
    Fail(file, entry.name, "data_offsets must be an array of two");
  }
  entry.begin = AsCount(file, entry.name, offsets.at(0).value_unsafe(), "data_offsets");
  entry.end = AsCount(file, entry.name, offsets.at(1).value_unsafe(), "data_offsets");
}

// Bytes that dtype and shape call for; an overflow is an error, never a small number.
std::int64_t BytesNeeded(const std::string& file, const SafetensorsEntry& entry) {
  std::int64_t bytes = BytesOfType(file, entry.name, entry.dtype);
  const bool empty = std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end();
  if (empty) return 0;
  for (const std::int64_t size : entry.shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes))
      Fail(file, entry.name, "has a shape whose size overflows");
  }
  return bytes;
}

SafetensorsEntry ReadEntry(const std::string& file, std::string_view name, simdjson::dom::element element) {
  SafetensorsEntry entry;
  entry.name = std::string(name);
  simdjson::dom::object members;
  if (element.get(members) != simdjson::SUCCESS) Fail(file, entry.name, "must be described by an object");
  std::array<bool, 3> seen{};
  for (const auto& [key, value] : members) {
    std::size_t which = 0;
    if (key == "dtype") {
      std::string_view dtype;
      if (value.get(dtype) != simdjson::SUCCESS) Fail(file, entry.name, "dtype must be a string");
      entry.dtype = std::string(dtype);
    } else if (key == "shape") {
      which = 1;
      if (!seen[which]) ReadShape(file, value, entry);
    } else if (key == "data_offsets") {
      which = 2;
      ReadOffsets(file, value, entry);
    } else {
      Fail(file, entry.name, "has an unknown member", std::string(key), "dtype, shape, data_offsets");
    }
    if (seen[which]) Fail(file, entry.name, "has a member twice", std::string(key));
    seen[which] = true;
  }
  if (!(seen[0] && seen[1] && seen[2])) {
    Fail(file, entry.name, "lacks a member", "", "dtype, shape and data_offsets");
  }
  return entry;
}

void CheckLayout(const std::string& file, std::vector<SafetensorsEntry>& entries, std::int64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::int64_t covered = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::string offsets = fmt::format("[{}, {}]", entry.begin, entry.end);
    if (entry.end < entry.begin || entry.end > data_bytes) {
      Fail(file, entry.name, fmt::format("has data_offsets outside the {} bytes of data", data_bytes),
           offsets);
    }
    if (entry.begin != covered) {
      Fail(file, entry.name,
           fmt::format("{} its neighbour, which ends at {}",
                       entry.begin < covered ? "overlaps" : "leaves a hole after", covered),
           offsets);
    }
    const std::int64_t needed = BytesNeeded(file, entry);
    if (needed != entry.end - entry.begin) {
      Fail(file, entry.name, fmt::format("needs {} bytes by its dtype and shape", needed), offsets);
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    Fail(file, "", fmt::format("describes {} bytes of data, but the file has {}", covered, data_bytes));
  }
}

}  // namespace

std::int64_t SafetensorsEntry::Elements() const {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

std::vector<SafetensorsEntry> ParseSafetensorsHeader(std::string_view header, std::int64_t data_bytes,
                                                     const std::string& file) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (const auto error = parser.parse(header.data(), header.size(), true).get(root)) {
    Fail(file, "", std::string("is not valid JSON: ") + simdjson::error_message(error));
  }
  simdjson::dom::object tensors;
  if (root.get(tensors) != simdjson::SUCCESS) Fail(file, "", "must be a JSON object");
  std::vector<SafetensorsEntry> entries;
  std::unordered_set<std::string> names;
  for (const auto& [name, value] : tensors) {
    if (!names.emplace(name).second) Fail(file, std::string(name), "occurs twice");
    if (name != "__metadata__") entries.push_back(ReadEntry(file, name, value));
  }
  CheckLayout(file, entries, data_bytes);
  return entries;
}

}  // namespace plumbline
