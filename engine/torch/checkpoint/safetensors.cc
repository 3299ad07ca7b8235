#include "engine/torch/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/torch/checkpoint/number_formats.h"

namespace plumbline {
namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::size_t kLengthBytes = 8;

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0)
      ThrowBadInput({.file = path, .problem = std::string("cannot be opened: ") + strerror(errno)});
  }
  ~FileDescriptor() { close(fd_); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// The header's length: 64 bits, little endian.
std::uint64_t HeaderLength(const std::byte* bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<std::uint64_t>(std::to_integer<unsigned>(bytes[i])) << (8 * i);
  }
  return length;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  const FileDescriptor file(path);
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    ThrowBadInput({.file = path, .problem = "is not a regular file"});
  }
  mapped_bytes_ = static_cast<std::size_t>(status.st_size);
  if (mapped_bytes_ < kLengthBytes) {
    ThrowBadInput({.file = path,
                   .value = std::to_string(mapped_bytes_) + " bytes",
                   .problem = "is too short for a safetensors file"});
  }
  void* mapping = mmap(nullptr, mapped_bytes_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapping == MAP_FAILED) {
    ThrowBadInput({.file = path, .problem = std::string("cannot be mapped: ") + strerror(errno)});
  }
  mapping_ = static_cast<const std::byte*>(mapping);
  try {
    const std::uint64_t header_bytes = HeaderLength(mapping_);
    const std::uint64_t room = mapped_bytes_ - kLengthBytes;
    if (header_bytes > kLongestHeader || header_bytes > room) {
      ThrowBadInput({.file = path,
                     .field = "header",
                     .value = std::to_string(header_bytes) + " bytes",
                     .problem = "has a length that the file cannot hold, or above 100 MB",
                     .accepted = "at most " + std::to_string(std::min(room, kLongestHeader))});
    }
    data_offset_ = kLengthBytes + static_cast<std::size_t>(header_bytes);
    entries_ = ParseSafetensorsHeader(
        {reinterpret_cast<const char*>(mapping_) + kLengthBytes, static_cast<std::size_t>(header_bytes)},
        static_cast<std::int64_t>(mapped_bytes_ - data_offset_), path);
  } catch (...) {
    munmap(mapping, mapped_bytes_);
    throw;
  }
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_bytes_(other.mapped_bytes_),
      data_offset_(other.data_offset_),
      entries_(std::move(other.entries_)) {}

SafetensorsFile::~SafetensorsFile() {
  if (mapping_ != nullptr) munmap(const_cast<std::byte*>(mapping_), mapped_bytes_);
}

void SafetensorsFile::Read(const SafetensorsEntry& entry, std::span<float> out) const {
  // The data need not be aligned: every element goes through memcpy.
  const std::byte* source = mapping_ + data_offset_ + entry.begin;
  if (entry.dtype == "F32") {
    std::memcpy(out.data(), source, out.size_bytes());
    return;
  }
  if (entry.dtype != "F16" && entry.dtype != "BF16") {
    ThrowBadInput({.file = path_,
                   .field = "tensor " + entry.name,
                   .value = entry.dtype,
                   .problem = "is a dtype that weights cannot have here",
                   .accepted = "F32, F16, BF16"});
  }
  const bool half = entry.dtype == "F16";
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, source + i * sizeof(bits), sizeof(bits));
    out[i] = half ? FloatFromFloat16(bits) : FloatFromBfloat16(bits);
  }
}

}  // namespace plumbline
