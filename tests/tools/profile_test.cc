#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "call_plumb.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

TEST(PlumbProfile, NeedsAModelUnlessItImports) {
  const PlumbOutcome outcome = CallPlumb({"profile", "--engine", "torch", "--output", "out"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--model: is required"));
}

TEST(PlumbProfile, ImportNamesARunThatIsNone) {
  const PlumbOutcome outcome =
      CallPlumb({"profile", "--output", "/no/bundle", "--import-execution", "/no/such/run"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("/no/such/run"));
}

TEST(PlumbProfile, RefusesNoPasses) {
  EXPECT_EQ(CallPlumb({"profile", "--model", "m", "--output", "out", "--passes", "0"}).code, 1);
}

}  // namespace
}  // namespace plumbline
