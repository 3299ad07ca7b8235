#include "engine/base/error.h"

#include <gtest/gtest.h>

namespace plumbline {
namespace {

TEST(Describe, NamesFileLineFieldValueAndAcceptedValues) {
  EXPECT_EQ(Describe({.file = "w.jsonl",
                      .line = 3,
                      .field = "--dtype",
                      .value = "fp7",
                      .problem = "is not a dtype",
                      .accepted = "float32, bfloat16"}),
            "w.jsonl:3: --dtype: is not a dtype (got \"fp7\"; accepted: float32, bfloat16)");
}

TEST(Describe, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(Describe({.problem = "is empty"}), "is empty");
}

TEST(Describe, ShortensLongValuesAndEscapesControlCharacters) {
  const std::string text =
      Describe({.value = std::string("\x01", 1) + std::string(200, 'x'), .problem = "bad"});
  EXPECT_NE(text.find("\\x01"), std::string::npos);
  EXPECT_NE(text.find("..."), std::string::npos);
  EXPECT_LT(text.size(), 120u);
}

TEST(ThrowBadInput, CarriesTheExitCode) {
  try {
    ThrowBadInput({.problem = "bad"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
  }
}

}  // namespace
}  // namespace plumbline
