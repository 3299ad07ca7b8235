#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"
#include "engine/torch/checkpoint/model_config.h"
#include "engine/torch/checkpoint/tensor_list.h"

// Whatever is accepted must be a shape that can be counted.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const plumbline::ModelConfig config =
        plumbline::ParseModelConfig({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (plumbline::CountParameters(config) <= 0) std::abort();
    if (config.num_attention_heads % config.num_key_value_heads != 0) std::abort();
  } catch (const plumbline::Error&) {
    // A refusal is a good answer.
  }
  return 0;
}
