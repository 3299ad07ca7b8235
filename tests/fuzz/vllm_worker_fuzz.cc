// What comes out of the vLLM worker's socket, cut anywhere, as every message that it could be.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/error.h"
#include "engine/vllm/finished_request.h"
#include "engine/vllm/vllm_facts.h"

namespace {

template <typename Read>
void Tolerate(Read&& read) {
  try {
    read();
  } catch (const plumbline::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plumbline::FrameReader reader;
  reader.Feed(std::string_view(reinterpret_cast<const char*>(data), size));
  Tolerate([&] {
    while (const std::optional<plumbline::Frame> frame = reader.Next()) {
      Tolerate([&] { plumbline::FinishedRequest(*frame).Events(0); });
      Tolerate([&] { plumbline::ReadCounters(frame->message); });
      if (frame->message.contains("facts")) Tolerate([&] { plumbline::VllmFacts(frame->message["facts"]); });
    }
  });
  return 0;
}
