#include "engine/torch/buffer.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <cstring>
#include <string>

#include "engine/base/error.h"

namespace plumbline {
namespace {

// Fewer page-table walks while weights and cache stream by. Only a hint: an old kernel may refuse it.
void AskForHugePages(void* memory, std::size_t bytes) {
  constexpr std::uintptr_t kHugePage = std::uintptr_t{1} << 21;
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + kHugePage - 1) & ~(kHugePage - 1);
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) & ~(kHugePage - 1);
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

Buffer::Buffer(std::int64_t bytes) {
  if (bytes == 0) return;
  try {
    auto data =
        std::make_shared<c10::DataPtr>(c10::GetCPUAllocator()->allocate(static_cast<std::size_t>(bytes)));
    void* memory = data->get();
    AskForHugePages(memory, static_cast<std::size_t>(bytes));
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
    memory_ = std::shared_ptr<void>(std::move(data), memory);
  } catch (const c10::Error& error) {
    throw Error(ExitCode::kEngineFailed,
                "cannot allocate " + std::to_string(bytes) + " bytes: " + error.what_without_backtrace());
  }
}

}  // namespace plumbline
