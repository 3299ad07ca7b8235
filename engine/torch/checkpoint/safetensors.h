#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

// Where one tensor lies in a safetensors file.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32", "BF16", ... as the file writes it
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // bytes from the end of the header
  std::int64_t end = 0;

  std::int64_t Elements() const;
};

// Checks a header against the format's rules: a JSON object of tensors with known dtypes, sizes that follow
// from dtype and shape, no name twice, and offsets that cover the `data_bytes` behind the header without a
// hole or an overlap. Entries in order of their offsets. Throws Error(kBadInput) naming the file and the
// tensor.
std::vector<SafetensorsEntry> ParseSafetensorsHeader(std::string_view header, std::int64_t data_bytes,
                                                     const std::string& file);

// A mapped safetensors file. The file must not be cut short while it is open.
class SafetensorsFile {
 public:
  // Throws Error(kBadInput): missing, too short, a header longer than the file or than 100 MB, or as
  // ParseSafetensorsHeader says.
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  // Widens or copies the tensor to float32; `out` holds Elements() values. Throws Error(kBadInput) for a
  // dtype other than F32, F16 and BF16.
  void Read(const SafetensorsEntry& entry, std::span<float> out) const;

 private:
  std::string path_;
  const std::byte* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::size_t data_offset_ = 0;
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace plumbline
