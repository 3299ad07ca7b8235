#include "engine/kernels/cpu/packed_weight.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace plumbline::cpu {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kCacheLine = 64;
constexpr std::int64_t kColumns = PackedWeight::kPanelColumns;

// Zeroed, aligned to a cache line, or to a huge page where it fills one: a decode step walks through all
// weights, and with small pages the walk misses the TLB at every page.
std::byte* Allocate(std::int64_t bytes) {
  const std::int64_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  const std::int64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(rounded));
  if (data == nullptr) throw std::bad_alloc();
  if (alignment == kHugePage) (void)madvise(data, static_cast<std::size_t>(rounded), MADV_HUGEPAGE);
  std::memset(data, 0, static_cast<std::size_t>(rounded));
  return static_cast<std::byte*>(data);
}

// Where an output stands.
struct Place {
  std::int64_t panel;
  std::int64_t column;
};

Place PlaceOf(std::int64_t output, std::int64_t outputs, PackOrder order) {
  if (order == PackOrder::kPlain) return {output / kColumns, output % kColumns};
  constexpr std::int64_t half = kColumns / 2;
  const bool up = output >= outputs / 2;
  const std::int64_t index = up ? output - outputs / 2 : output;
  return {index / half, index % half + (up ? half : 0)};
}

float ReadElement(const WeightRows& part, std::int64_t row, std::int64_t input) {
  const std::int64_t index = row * part.row_stride + input;
  if (part.dtype == Dtype::kFloat32) return static_cast<const float*>(part.data)[index];
  return Widen(static_cast<const BFloat16*>(part.data)[index]);
}

}  // namespace

void PackedWeight::Free::operator()(std::byte* data) const {
  std::free(data);
}

PackedWeight PackedWeight::Pack(Dtype dtype, std::span<const WeightRows> parts, std::int64_t inputs,
                                PackOrder order) {
  if (inputs < 1 || inputs > kMaxInputs)
    throw std::invalid_argument("PackedWeight: inputs outside 1 to 65536");
  if (order == PackOrder::kGateUp && (parts.size() != 2 || parts[0].rows != parts[1].rows)) {
    throw std::invalid_argument("PackedWeight: gate and up must be two parts of the same height");
  }
  PackedWeight packed;
  packed.dtype_ = dtype;
  packed.order_ = order;
  packed.inputs_ = inputs;
  for (const WeightRows& part : parts) packed.outputs_ += part.rows;
  const std::int64_t padded_inputs = dtype == Dtype::kFloat32 ? inputs : (inputs + 1) / 2 * 2;
  packed.panel_bytes_ = padded_inputs * kColumns * SizeOf(dtype);
  const std::int64_t per_panel = order == PackOrder::kGateUp ? kColumns / 2 : kColumns;
  const std::int64_t placed = order == PackOrder::kGateUp ? packed.outputs_ / 2 : packed.outputs_;
  packed.panels_ = (placed + per_panel - 1) / per_panel;
  if (packed.panels_ == 0) return packed;
  packed.data_.reset(Allocate(packed.bytes()));

  std::int64_t output = 0;
  for (const WeightRows& part : parts) {
    for (std::int64_t row = 0; row < part.rows; ++row, ++output) {
      const Place place = PlaceOf(output, packed.outputs_, order);
      std::byte* panel = packed.data_.get() + place.panel * packed.panel_bytes_;
      if (dtype == Dtype::kFloat32) {
        auto* out = reinterpret_cast<float*>(panel) + place.column;
        for (std::int64_t k = 0; k < inputs; ++k) out[k * kColumns] = ReadElement(part, row, k);
      } else {
        auto* out = reinterpret_cast<BFloat16*>(panel) + place.column * 2;
        for (std::int64_t k = 0; k < inputs; ++k) {
          out[k / 2 * (2 * kColumns) + k % 2] = Narrow(ReadElement(part, row, k));
        }
      }
    }
  }
  return packed;
}

}  // namespace plumbline::cpu
