#include "engine/torch/checkpoint/rope_config.h"

#include <cmath>
#include <numbers>

#include "engine/base/error.h"

namespace plumbline {
namespace {

constexpr const char* kAcceptedTypes = "default, llama3";

double PositiveDouble(const JsonView& object, const std::string& key) {
  const double value = object.Double(key);
  if (value <= 0) {
    ThrowBadInput({.file = object.file(),
                   .field = object.path() + "." + key,
                   .value = std::to_string(value),
                   .problem = "must be above 0"});
  }
  return value;
}

std::string TypeOf(const JsonView& object) {
  const auto newer = object.MaybeString("rope_type");
  const auto older = object.MaybeString("type");
  if (newer && older && *newer != *older) object.Fail("rope_type and type contradict each other");
  return newer ? *newer : older.value_or("default");
}

void RefusePartialRotation(const JsonView& object) {
  const auto factor = object.MaybeDouble("partial_rotary_factor");
  if (factor && *factor != 1) {
    ThrowBadInput({.file = object.file(),
                   .field = "partial_rotary_factor",
                   .value = std::to_string(*factor),
                   .problem = "rotating a part of each head is not supported",
                   .accepted = "1"});
  }
}

// What is scaled, from `rope_parameters` or `rope_scaling`.
void ReadScaling(const JsonView& object, RopeConfig& rope) {
  RefusePartialRotation(object);
  const std::string type = TypeOf(object);
  if (type == "llama3") {
    object.RejectUnknownKeys({"rope_type", "type", "rope_theta", "factor", "low_freq_factor",
                              "high_freq_factor", "original_max_position_embeddings",
                              "partial_rotary_factor"});
    rope.llama3 = true;
    rope.factor = PositiveDouble(object, "factor");
    rope.low_freq_factor = PositiveDouble(object, "low_freq_factor");
    rope.high_freq_factor = PositiveDouble(object, "high_freq_factor");
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      object.Fail("high_freq_factor must be above low_freq_factor");
    }
    rope.original_max_position_embeddings = object.Int("original_max_position_embeddings");
    if (rope.original_max_position_embeddings < 1) {
      object.Fail("original_max_position_embeddings must be above 0");
    }
  } else if (type == "default") {
    object.RejectUnknownKeys({"rope_type", "type", "rope_theta", "partial_rotary_factor"});
  } else {
    ThrowBadInput({.file = object.file(),
                   .field = object.path() + ".rope_type",
                   .value = type,
                   .problem = "is a rotary embedding that this engine does not have",
                   .accepted = kAcceptedTypes});
  }
}

}  // namespace

RopeConfig ReadRopeConfig(const JsonView& config) {
  RopeConfig rope;
  RefusePartialRotation(config);
  const auto parameters = config.MaybeObject("rope_parameters");
  const auto scaling = config.MaybeObject("rope_scaling");
  if (scaling) ReadScaling(*scaling, rope);
  if (parameters) {
    RopeConfig newer;
    ReadScaling(*parameters, newer);
    if (scaling && TypeOf(*scaling) != TypeOf(*parameters)) {
      scaling->Fail("contradicts rope_parameters");
    }
    rope = newer;
  }
  const bool nested = parameters && parameters->Has("rope_theta");
  if (nested) rope.theta = PositiveDouble(*parameters, "rope_theta");
  if (config.Has("rope_theta")) {
    const double theta = PositiveDouble(config, "rope_theta");
    if (nested && theta != rope.theta) {
      ThrowBadInput({.file = config.file(),
                     .field = "rope_theta",
                     .value = std::to_string(theta),
                     .problem = "contradicts rope_parameters.rope_theta",
                     .accepted = std::to_string(rope.theta)});
    }
    rope.theta = theta;
  }
  return rope;
}

std::vector<double> InverseFrequencies(const RopeConfig& rope, std::int64_t head_dim) {
  std::vector<double> frequencies;
  for (std::int64_t pair = 0; pair < head_dim / 2; ++pair) {
    double frequency =
        1.0 / std::pow(rope.theta, 2.0 * static_cast<double>(pair) / static_cast<double>(head_dim));
    if (rope.llama3) {
      const double wavelength = 2 * std::numbers::pi / frequency;
      const double original = static_cast<double>(rope.original_max_position_embeddings);
      if (wavelength > original / rope.low_freq_factor) {
        frequency /= rope.factor;
      } else if (wavelength > original / rope.high_freq_factor) {
        const double smooth =
            (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
        frequency = (1 - smooth) * frequency / rope.factor + smooth * frequency;
      }
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

}  // namespace plumbline
