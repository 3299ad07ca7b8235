#include <cmath>
#include <cstdint>

#include "engine/torch/checkpoint/random_bits.h"
#include "engine/torch/checkpoint/weight_source.h"

namespace plumbline {
namespace {

std::uint64_t HashName(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Standard deviation of a tensor's values. A projection keeps the size of its input; queries and keys are
// larger, so that attention scores differ by a few units and a wrong key changes the answer.
double Deviation(const TensorSpec& tensor) {
  constexpr double kQueryKeyGain = 1.5;
  switch (tensor.role) {
    case TensorSpec::Role::kEmbedding:
      return 1;
    case TensorSpec::Role::kProjection:
      return 1 / std::sqrt(static_cast<double>(tensor.shape[1]));
    case TensorSpec::Role::kQueryKeyProjection:
      return kQueryKeyGain / std::sqrt(static_cast<double>(tensor.shape[1]));
    case TensorSpec::Role::kNorm:
    case TensorSpec::Role::kBias:
      return 0.1;
  }
  return 1;
}

class Dummy final : public WeightSource {
 public:
  explicit Dummy(std::uint64_t seed) : seed_(seed) {}

  void Read(const TensorSpec& tensor, std::span<float> out) override {
    const std::uint64_t stream = MixBits(seed_ ^ MixBits(HashName(tensor.name)));
    // Uniform on [-a, a) has the deviation a / sqrt(3). sqrt is exact to the last bit everywhere.
    const float scale = static_cast<float>(Deviation(tensor) * std::sqrt(3.0) * 0x1p-23);
    const float middle = tensor.role == TensorSpec::Role::kNorm ? 1.0f : 0.0f;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t bits = RandomBits(stream, i) >> 40;
      const std::int32_t centred = static_cast<std::int32_t>(bits) - (1 << 23);
      const float spread = static_cast<float>(centred) * scale;
      out[i] = middle + spread;
    }
  }

 private:
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<WeightSource> DummyWeights(std::uint64_t seed) {
  return std::make_unique<Dummy>(seed);
}

}  // namespace plumbline
