#include "engine/vllm/frame.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace plumbline {
namespace {

TEST(Frame, ComesOutAsItWentInHoweverItIsCut) {
  const std::string blob("\0\1\2", 3);
  const std::string bytes = EncodeFrame(Json{{"type", "a"}}, blob) + EncodeFrame(Json{{"type", "b"}}) +
                            EncodeFrame(Json{{"x", 1}}, "yz");
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (std::size_t begin = 0; begin < bytes.size(); begin += piece) {
      reader.Feed(std::string_view(bytes).substr(begin, piece));
      while (std::optional<Frame> frame = reader.Next()) frames.push_back(std::move(*frame));
    }
    ASSERT_EQ(frames.size(), 3u);
    EXPECT_EQ(frames[0].message["type"], "a");
    EXPECT_EQ(frames[0].blob, blob);
    EXPECT_EQ(frames[1].message["type"], "b");
    EXPECT_EQ(frames[1].blob, "");
    EXPECT_EQ(frames[2].message["x"], 1);
    EXPECT_EQ(frames[2].blob, "yz");
  }
}

TEST(Frame, LengthsAreLittleEndian) {
  EXPECT_EQ(EncodeFrame(Json::object(), "abc"), std::string("\2\0\0\0\3\0\0\0{}abc", 13));
}

TEST(Frame, WhatIsNoMessageEndsTheEngine) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff\0\0\0\0", 8), std::string("\2\0\0\0\xff\xff\xff\xff{}", 10),
        std::string("\2\0\0\0\0\0\0\0[]", 10), std::string("\3\0\0\0\0\0\0\0nan", 11)}) {
    FrameReader reader;
    reader.Feed(bytes);
    try {
      reader.Next();
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kEngineFailed);
    }
  }
}

}  // namespace
}  // namespace plumbline
