#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plumbline {

// Lets a reader that takes a path read bytes of memory.
class BytesAsFile {
 public:
  BytesAsFile(const std::uint8_t* data, std::size_t size);
  ~BytesAsFile();
  BytesAsFile(const BytesAsFile&) = delete;
  BytesAsFile& operator=(const BytesAsFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

}  // namespace plumbline
