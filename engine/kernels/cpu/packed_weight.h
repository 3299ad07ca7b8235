#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/kernels/cpu/dtype.h"

namespace plumbline::cpu {

// Some rows of a weight matrix as a checkpoint holds them: [rows, columns], row-major, row = output feature.
struct WeightRows {
  const void* data = nullptr;
  Dtype dtype = Dtype::kFloat32;
  std::int64_t rows = 0;
  std::int64_t row_stride = 0;  // elements
};

// Which output features stand side by side in a panel.
enum class PackOrder {
  kPlain,   // as given
  kGateUp,  // two equal parts, gate then up: pairs them, so that Product can write silu(gate) * up at once
};

// A weight matrix W [outputs, inputs] in the order in which Product reads it, the same for every instruction
// set: panels of kPanelColumns outputs, contiguous over the inputs, the last panel padded with zeros.
//   float32   [panels, inputs, 16]
//   bfloat16  [panels, inputs / 2 rounded up, 16, 2]: two inputs of a column side by side
//   kGateUp   a panel holds 8 outputs of gate, then the same 8 of up
// Packed once; the caller may free the source. Reading it from many threads is safe.
class PackedWeight {
 public:
  static constexpr std::int64_t kPanelColumns = 16;
  static constexpr std::int64_t kMaxInputs = 65536;

  PackedWeight() = default;

  // Stacks `parts` along the outputs (q, k and v make one product) and stores them as `dtype`; float32
  // sources are rounded to nearest even for bfloat16. Allocates and may throw std::bad_alloc; throws
  // std::invalid_argument for inputs outside 1 to kMaxInputs, and for kGateUp with other than two parts of
  // the same height.
  static PackedWeight Pack(Dtype dtype, std::span<const WeightRows> parts, std::int64_t inputs,
                           PackOrder order = PackOrder::kPlain);

  Dtype dtype() const { return dtype_; }
  PackOrder order() const { return order_; }
  std::int64_t inputs() const { return inputs_; }    // K
  std::int64_t outputs() const { return outputs_; }  // N, all parts together
  std::int64_t panels() const { return panels_; }
  std::int64_t panel_bytes() const { return panel_bytes_; }
  std::int64_t bytes() const { return panels_ * panel_bytes_; }  // what it holds in memory, padding included
  const std::byte* panel(std::int64_t index) const { return data_.get() + index * panel_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };

  Dtype dtype_ = Dtype::kFloat32;
  PackOrder order_ = PackOrder::kPlain;
  std::int64_t inputs_ = 0;
  std::int64_t outputs_ = 0;
  std::int64_t panels_ = 0;
  std::int64_t panel_bytes_ = 0;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace plumbline::cpu
