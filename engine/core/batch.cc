#include "engine/core/batch.h"

namespace plumbline {

void Batch::Clear() {
  std::vector<BatchEntry> kept = std::move(entries);
  kept.clear();
  *this = Batch{};
  entries = std::move(kept);
}

}  // namespace plumbline
