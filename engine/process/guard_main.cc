// plumb_guard GRACE_MS PROGRAM [ARGUMENT...]: started by plumb, never by hand (engine/process/guard.h).
#include <charconv>
#include <cstdio>
#include <string_view>

#include "engine/process/guard.h"

int main(int argc, char** argv) {
  long grace_ms = -1;
  if (argc >= 3) {
    const std::string_view text = argv[1];
    std::from_chars(text.data(), text.data() + text.size(), grace_ms);
  }
  if (grace_ms < 0) {
    std::fputs("usage: plumb_guard GRACE_MS PROGRAM [ARGUMENT...]; plumb starts it by itself\n", stderr);
    return 1;
  }
  return plumbline::RunGuard({argv + 2, argv + argc}, std::chrono::milliseconds(grace_ms));
}
