#include "tools/progress_line.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace plumbline {
namespace {

ReplayProgress At(double elapsed_s, std::int64_t done) {
  ReplayProgress progress;
  progress.done = done;
  progress.total = 300;
  progress.elapsed_s = elapsed_s;
  progress.tokens_per_s = 845.25;
  progress.seconds_left = 33.2;
  return progress;
}

// What the calls of `show` leave in the stream.
template <typename Show>
std::string Printed(bool is_terminal, Show show) {
  std::FILE* stream = std::tmpfile();
  ProgressLine line(stream, is_terminal);
  show(line);
  line.Finish();
  std::string text(static_cast<std::size_t>(std::ftell(stream)), '\0');
  std::rewind(stream);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), stream), text.size());
  std::fclose(stream);
  return text;
}

TEST(ProgressLine, NamesDoneTotalRateAndTimeLeft) {
  EXPECT_EQ(FormatProgress(At(4, 12)), "12/300 requests, 845.2 tokens/s, 34 s left");
  EXPECT_EQ(FormatProgress(At(4, 300)), "300/300 requests, 845.2 tokens/s");
}

TEST(ProgressLine, PlainLinesComeEveryTenSecondsAndAtTheEnd) {
  const std::string text = Printed(false, [](ProgressLine& line) {
    for (double t : {1.0, 9.0, 10.0, 11.0, 19.0, 20.5}) line.Show(At(t, 7));
    line.Show(At(21, 300));
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

TEST(ProgressLine, TerminalLineIsWrittenOverAndClosedOnce) {
  const std::string text = Printed(true, [](ProgressLine& line) {
    line.Show(At(1, 7));
    line.Show(At(2, 9));
    line.Finish();
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 2);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace plumbline
