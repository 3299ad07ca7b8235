#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/base/json.h"

namespace plumbline {

// What plumb and its vLLM worker say to each other: a JSON object and, beside it, bytes that would be dear as
// JSON (token ids as int32, times as double, both in this machine's order).
struct Frame {
  Json message;
  std::string blob;
};

// Two little-endian uint32 (length of the JSON text, length of the blob), then both.
std::string EncodeFrame(const Json& message, std::string_view blob = {});

// Puts frames together from bytes as they come.
class FrameReader {
 public:
  void Feed(std::string_view bytes) { buffer_ += bytes; }

  // The next whole frame. Throws Error(kEngineFailed) for lengths above 1 GiB and for what is no JSON object:
  // whoever sent that is not the worker.
  std::optional<Frame> Next();

 private:
  std::string buffer_;
  std::size_t begin_ = 0;
};

}  // namespace plumbline
