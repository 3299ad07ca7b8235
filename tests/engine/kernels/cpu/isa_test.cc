#include "engine/kernels/cpu/isa.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/kernels/cpu/kernels.h"

namespace plumbline::cpu {
namespace {

TEST(Isa, BestIsTheWidestSupported) {
  const Isa best = BestIsa();
  for (Isa isa : AllIsas()) {
    if (Supported(isa)) {
      EXPECT_LE(static_cast<int>(isa), static_cast<int>(best)) << Name(isa);
    }
  }
  EXPECT_EQ(BestKernels().isa, best);
}

TEST(Isa, WiderOnesIncludeNarrowerOnes) {
  for (std::size_t i = 1; i < AllIsas().size(); ++i) {
    if (Supported(AllIsas()[i])) {
      EXPECT_TRUE(Supported(AllIsas()[i - 1])) << Name(AllIsas()[i]);
    }
  }
}

TEST(Isa, KernelsThatTheCpuLacksAreAnErrorThatNamesThem) {
  for (Isa isa : AllIsas()) {
    if (Supported(isa)) {
      EXPECT_EQ(KernelsFor(isa).isa, isa);
      continue;
    }
    try {
      KernelsFor(isa);
      FAIL() << Name(isa);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kEngineFailed);
      EXPECT_NE(std::string(error.what()).find(Name(isa)), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace plumbline::cpu
