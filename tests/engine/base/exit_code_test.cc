#include "engine/base/exit_code.h"

#include <gtest/gtest.h>
#include <vector>

namespace plumbline {
namespace {

ExitCode Of(std::vector<ExitCode> codes) {
  return Combine(codes);
}

TEST(Combine, TakesTheGravestInTheDocumentedOrder) {
  using enum ExitCode;
  EXPECT_EQ(Of({kPass, kRegressed}), kRegressed);
  EXPECT_EQ(Of({kRegressed, kInvalid}), kInvalid);
  EXPECT_EQ(Of({kInvalid, kEngineFailed}), kEngineFailed);
  EXPECT_EQ(Of({kEngineFailed, kInterrupted}), kInterrupted);
  EXPECT_EQ(Of({kInterrupted, kBadInput}), kBadInput);
}

TEST(Combine, SkippedOnlyIfNothingRan) {
  using enum ExitCode;
  EXPECT_EQ(Of({kSkipped, kPass}), kPass);
  EXPECT_EQ(Of({kSkipped, kSkipped}), kSkipped);
}

TEST(Combine, NothingSelectedIsNoPass) {
  EXPECT_EQ(Of({}), ExitCode::kNothingSelected);
}

}  // namespace
}  // namespace plumbline
