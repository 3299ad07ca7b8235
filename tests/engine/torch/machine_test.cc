#include <gtest/gtest.h>
#include <cstdint>

#include "engine/base/error.h"
#include "engine/torch/blas_speed.h"
#include "engine/torch/buffer.h"
#include "engine/torch/system_memory.h"

namespace plumbline {
namespace {

TEST(Buffer, IsAlignedAndZeroed) {
  const Buffer buffer = MakeBuffer<float>(100'000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.As<float>()) % 64, 0u);
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(buffer.As<float>()[i], 0);
}

TEST(Buffer, WithoutRoomNamesTheBytes) {
  try {
    const Buffer buffer(std::int64_t{1} << 60);
    FAIL() << "an exbibyte was allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kEngineFailed);
    EXPECT_NE(std::string(error.what()).find("1152921504606846976"), std::string::npos);
  }
}

TEST(MeasureBlas, SaysWhatItIsAndHowFast) {
  const BlasSpeed speed = MeasureBlas();
  EXPECT_FALSE(speed.torch_version.empty());
  EXPECT_FALSE(speed.blas.empty());
  EXPECT_GT(speed.gflops, 0);
}

TEST(SystemMemory, IsCounted) {
  const SystemMemory memory = ReadSystemMemory();
  ASSERT_TRUE(memory.total_bytes && memory.available_bytes);
  EXPECT_GT(*memory.available_bytes, 0);
  EXPECT_GE(*memory.total_bytes, *memory.available_bytes);
}

}  // namespace
}  // namespace plumbline
