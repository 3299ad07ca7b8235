#include "tests/fuzz/bytes_as_file.h"

#include <sys/mman.h>
#include <unistd.h>
#include <stdexcept>

namespace plumbline {

BytesAsFile::BytesAsFile(const std::uint8_t* data, std::size_t size)
    : fd_(::memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
  if (fd_ < 0 || ::write(fd_, data, size) != static_cast<ssize_t>(size)) {
    throw std::runtime_error("no memory for the fuzzed file");
  }
}

BytesAsFile::~BytesAsFile() {
  ::close(fd_);
}

}  // namespace plumbline
