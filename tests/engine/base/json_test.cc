#include "engine/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "engine/base/error.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

std::string MessageOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ParseJson, NamesTheLine) {
  EXPECT_THAT(MessageOf([] { ParseJson("{\n\"a\": 1,\n}", "f.json"); }),
              HasSubstr("f.json:3: is not valid JSON"));
}

TEST(ParseJson, CountsLinesFromTheRowItIsGiven) {
  EXPECT_THAT(MessageOf([] { ParseJson("{\"a\":", "f.jsonl", 7); }), HasSubstr("f.jsonl:7"));
}

TEST(ParseJson, RefusesNaN) {
  EXPECT_THROW(ParseJson("{\"a\": NaN}", "f"), Error);
}

TEST(ParseJson, RefusesNestingThatWouldOverflowTheStack) {
  EXPECT_THAT(MessageOf([] { ParseJson("\n" + std::string(1'000'000, '['), "f.json"); }),
              HasSubstr("f.json:2: is JSON nested deeper than 200 levels"));
  const std::string brackets_in_text = "\"" + std::string(300, '[') + "\\\"[\"";
  EXPECT_EQ(ParseJson(brackets_in_text, "f").get<std::string>().size(), 302u);
}

TEST(PrintJson, NonFiniteNumberIsABug) {
  Json value;
  value["rate"] = std::numeric_limits<double>::infinity();
  EXPECT_THROW(PrintJson(value), std::logic_error);
}

TEST(PrintJson, KeepsTheOrderOfKeys) {
  Json value;
  value["b"] = 1;
  value["a"] = 2;
  EXPECT_EQ(PrintJson(value), "{\n  \"b\": 1,\n  \"a\": 2\n}\n");
}

class JsonViewTest : public testing::Test {
 protected:
  const Json value_ =
      ParseJson(R"({"i": 3, "e": 1e8, "f": 1.5, "n": null, "s": "x", "o": {"k": -1}, "a": [1, "b"],
                                    "big": 18446744073709551615, "neg": -2})",
                "f.json");
  const JsonView view_{value_, "f.json", 12};
};

TEST_F(JsonViewTest, ReadsIntegersWrittenAsFloats) {
  EXPECT_EQ(view_.Int("i"), 3);
  EXPECT_EQ(view_.Int("e"), 100000000);
}

TEST_F(JsonViewTest, WrongTypeNamesFileLineFieldAndValue) {
  EXPECT_EQ(MessageOf([&] { view_.Int("s"); }), "f.json:12: s: must be an integer (got \"\"x\"\")");
  EXPECT_THAT(MessageOf([&] { view_.Int("f"); }), HasSubstr("f: must be an integer (got \"1.5\")"));
  EXPECT_THAT(MessageOf([&] { view_.Object("o").String("k"); }), HasSubstr("o.k: must be a string"));
  EXPECT_THAT(MessageOf([&] { view_.Array("a")[1].AsInt(); }), HasSubstr("a[1]: must be an integer"));
}

TEST_F(JsonViewTest, MissingKeyIsNamed) {
  EXPECT_EQ(MessageOf([&] { view_.Int("zz"); }), "f.json:12: zz: is missing");
}

TEST_F(JsonViewTest, NullIsAbsent) {
  EXPECT_FALSE(view_.Has("n"));
  EXPECT_FALSE(view_.MaybeInt("n").has_value());
  EXPECT_FALSE(view_.MaybeInt("zz").has_value());
}

TEST_F(JsonViewTest, IntegersOutOfRangeAreRefused) {
  EXPECT_THROW(view_.Int("big"), Error);
  EXPECT_EQ(view_.UInt("big"), 18446744073709551615ull);
  EXPECT_THROW(view_.UInt("neg"), Error);
}

TEST_F(JsonViewTest, UnknownKeysListTheKnownOnes) {
  EXPECT_THAT(MessageOf([&] {
                view_.Object("o").RejectUnknownKeys({"x", "y"});
              }),
              HasSubstr("has the unknown key 'k'"));
  EXPECT_NO_THROW(view_.Object("o").RejectUnknownKeys({"k"}));
}

}  // namespace
}  // namespace plumbline
