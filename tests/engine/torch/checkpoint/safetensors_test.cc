#include "engine/torch/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <filesystem>

#include "engine/base/error.h"
#include "tests/engine/torch/checkpoint/model_folder.h"

namespace plumbline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string HeaderRefusal(const std::string& header, std::int64_t data_bytes = 8) {
  try {
    ParseSafetensorsHeader(header, data_bytes, "m.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("m.safetensors"));
    return error.what();
  }
  return "accepted";
}

std::string FileRefusal(const std::string& bytes) {
  const ModelFolder folder;
  const std::string path = folder.Write("m.safetensors", bytes);
  try {
    const SafetensorsFile file(path);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
    return error.what();
  }
  return "accepted";
}

TEST(Safetensors, ReadsWhatWasWritten) {
  const ModelFolder folder;
  const SafetensorsFile file(folder.Write(
      "m.safetensors", SafetensorsBytes({{"a", "F32", {2, 2}, {1, 2, 3, 4}}, {"b", "BF16", {3}, {}}})));
  ASSERT_EQ(file.entries().size(), 2u);
  EXPECT_THAT(file.entries()[0].shape, ElementsAre(2, 2));
  std::vector<float> values(4);
  file.Read(file.entries()[0], values);
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4));
}

TEST(Safetensors, WidensHalfPrecision) {
  const ModelFolder folder;
  const std::string header = R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]}})";
  const std::string data("\x00\x3c\x00\xc0\x80\x3f\x00\xc0", 8);  // 1, -2 in each
  const SafetensorsFile file(folder.Write("m.safetensors", SafetensorsBytes(header, data)));
  for (const SafetensorsEntry& entry : file.entries()) {
    std::vector<float> values(2);
    file.Read(entry, values);
    EXPECT_THAT(values, ElementsAre(1, -2)) << entry.dtype;
  }
}

TEST(Safetensors, DtypeThatCannotBeWeightsIsRefusedWhenRead) {
  const ModelFolder folder;
  const std::string header = R"({"i":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})";
  const SafetensorsFile file(folder.Write("m.safetensors", SafetensorsBytes(header, std::string(8, '\0'))));
  std::vector<float> values(2);
  EXPECT_THROW(file.Read(file.entries()[0], values), Error);
}

TEST(Safetensors, LyingHeaderLengthIsRefused) {
  EXPECT_THAT(FileRefusal(""), HasSubstr("too short"));
  EXPECT_THAT(FileRefusal("1234567"), HasSubstr("too short"));
  EXPECT_THAT(FileRefusal(std::string("\xff\x00\x00\x00\x00\x00\x00\x00{}", 10)), HasSubstr("255 bytes"));
  EXPECT_THAT(FileRefusal(std::string(8, '\xff') + "{}"), HasSubstr("above 100 MB"));
  EXPECT_THROW(SafetensorsFile("/no/such/file"), Error);
  EXPECT_THROW(SafetensorsFile(testing::TempDir()), Error);
}

TEST(Safetensors, LengthAbove100MegabytesIsRefusedEvenWhereTheFileHasIt) {
  const ModelFolder folder;
  const std::string path = folder.Write("m.safetensors", std::string("\x01\xe1\xf5\x05\x00\x00\x00\x00", 8));
  std::filesystem::resize_file(path, 100'000'100);  // sparse
  EXPECT_THROW(SafetensorsFile{path}, Error);
}

TEST(SafetensorsHeader, NotJsonOrNotAnObjectIsRefused) {
  EXPECT_THAT(HeaderRefusal(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(HeaderRefusal("{\"a\":"), HasSubstr("not valid JSON"));
  EXPECT_THAT(HeaderRefusal("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(HeaderRefusal("{\"a\":1}"), HasSubstr("tensor a: must be described by an object"));
  EXPECT_THAT(HeaderRefusal(std::string(100'000, '[')), HasSubstr("not valid JSON"));
}

TEST(SafetensorsHeader, MembersAreChecked) {
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","shape":[2]}})"), HasSubstr("lacks a member"));
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})"),
              HasSubstr("unknown dtype"));
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})"),
              HasSubstr("sizes"));
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})"),
              HasSubstr("sizes"));
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})"),
              HasSubstr("data_offsets"));
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})"),
              HasSubstr("unknown member"));
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","dtype":"F16","shape":[2],"data_offsets":[0,8]}})"),
              HasSubstr("twice"));
}

TEST(SafetensorsHeader, SizesThatDoNotFitAreRefused) {
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})"),
              HasSubstr("needs 12 bytes"));
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})"),
              HasSubstr("outside"));
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})"),
              HasSubstr("outside"));
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,8]}})"),
              HasSubstr("overflows"));
  EXPECT_THAT(HeaderRefusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"),
              HasSubstr("describes 4 bytes"));
}

TEST(SafetensorsHeader, OverlapsHolesAndTwinsAreRefused) {
  const auto two = [](const char* a, const char* first, const char* b, const char* second) {
    return std::string("{\"") + a + R"(":{"dtype":"F32","shape":[1],"data_offsets":)" + first + "},\"" + b +
           R"(":{"dtype":"F32","shape":[1],"data_offsets":)" + second + "}}";
  };
  EXPECT_EQ(HeaderRefusal(two("a", "[4,8]", "b", "[0,4]")), "accepted");
  EXPECT_THAT(HeaderRefusal(two("a", "[0,4]", "b", "[2,6]")), HasSubstr("tensor b: overlaps"));
  EXPECT_THAT(HeaderRefusal(two("a", "[0,4]", "b", "[8,12]"), 12), HasSubstr("leaves a hole"));
  EXPECT_THAT(HeaderRefusal(two("a", "[0,4]", "a", "[4,8]")), HasSubstr("tensor a: occurs twice"));
}

TEST(SafetensorsHeader, MetadataAndEmptyTensorsAreAllowed) {
  const auto entries = ParseSafetensorsHeader(
      R"({"__metadata__":{"format":"pt"},"e":{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0]}})",
      0, "m");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].Elements(), 0);
}

}  // namespace
}  // namespace plumbline
