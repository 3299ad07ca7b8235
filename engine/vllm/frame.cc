#include "engine/vllm/frame.h"

#include <cstdint>

#include "engine/base/error.h"

namespace plumbline {
namespace {

constexpr std::size_t kHeaderBytes = 8;
constexpr std::uint32_t kLongest = 1u << 30;

void AppendLength(std::string& bytes, std::size_t length) {
  if (length > kLongest) throw Error(ExitCode::kEngineFailed, "a message to the vLLM worker exceeds 1 GiB");
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift & 0xff);
}

std::uint32_t LengthAt(std::string_view bytes, std::size_t at) {
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  if (length > kLongest) throw Error(ExitCode::kEngineFailed, "the vLLM worker sent what is no message");
  return length;
}

}  // namespace

std::string EncodeFrame(const Json& message, std::string_view blob) {
  const std::string text = message.dump();
  std::string bytes;
  bytes.reserve(kHeaderBytes + text.size() + blob.size());
  AppendLength(bytes, text.size());
  AppendLength(bytes, blob.size());
  bytes += text;
  bytes += blob;
  return bytes;
}

std::optional<Frame> FrameReader::Next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < kHeaderBytes) return std::nullopt;
  const std::size_t text_length = LengthAt(rest, 0);
  const std::size_t blob_length = LengthAt(rest, 4);
  const std::size_t length = kHeaderBytes + text_length + blob_length;
  if (rest.size() < length) return std::nullopt;
  Frame frame;
  try {
    frame.message = ParseJson(rest.substr(kHeaderBytes, text_length), "vLLM worker");
  } catch (const Error& error) {
    throw Error(ExitCode::kEngineFailed, error.what());
  }
  if (!frame.message.is_object()) {
    throw Error(ExitCode::kEngineFailed, "the vLLM worker sent a message that is no JSON object");
  }
  frame.blob = rest.substr(kHeaderBytes + text_length, blob_length);
  begin_ += length;
  // Moved down only when much lies before it: a burst of frames is not copied once a frame.
  if (begin_ == buffer_.size() || begin_ > (1u << 20)) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return frame;
}

}  // namespace plumbline
