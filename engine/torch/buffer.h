#pragma once

#include <cstdint>
#include <memory>

namespace plumbline {

// Memory from libtorch's CPU allocator: aligned to 64 bytes, zeroed, every page in place before the first
// step, so that nothing grows or faults while requests are measured.
class Buffer {
 public:
  Buffer() = default;
  // Throws Error(kEngineFailed) naming the bytes when there is no room.
  explicit Buffer(std::int64_t bytes);

  template <typename T>
  T* As() const {
    return static_cast<T*>(memory_.get());
  }

 private:
  std::shared_ptr<void> memory_;
};

template <typename T>
Buffer MakeBuffer(std::int64_t elements) {
  return Buffer(elements * static_cast<std::int64_t>(sizeof(T)));
}

}  // namespace plumbline
