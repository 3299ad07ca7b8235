// Drives one LLVMFuzzerTestOneInput where the compiler brings no libFuzzer: every file of the corpus as it
// is, then mutations of them. Takes libFuzzer's flags:
//   PROGRAM [-runs=N] [-max_total_time=S] [-timeout=S] [-seed=N] [-artifact_prefix=P] FILE_OR_FOLDER...
// An input that ends the process is left as <prefix>crash, one that takes too long as <prefix>timeout; either
// given as FILE runs it again.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// A sanitizer's report ends in abort(), so that the handler below sees it.
extern "C" const char* __asan_default_options() {
  return "abort_on_error=1";
}
extern "C" const char* __ubsan_default_options() {
  return "abort_on_error=1:print_stacktrace=1";
}

namespace {

struct Options {
  std::uint64_t runs = 2000;
  double max_total_time_s = 30;
  unsigned timeout_s = 10;
  std::uint64_t seed = 1;
  std::string artifact_prefix = "./";
  std::vector<std::string> paths;
};

// What the handler writes out. Plain globals: a signal handler may touch nothing else.
const char* g_input = nullptr;
std::size_t g_input_size = 0;
char g_crash_path[4096];
char g_timeout_path[4096];

void WriteAll(int fd, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, bytes, size);
    if (n <= 0) return;
    bytes += n;
    size -= static_cast<std::size_t>(n);
  }
}

void KeepInputAndDie(int signal) {
  const char* path = signal == SIGALRM ? g_timeout_path : g_crash_path;
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd >= 0) WriteAll(fd, g_input, g_input_size);
  WriteAll(STDERR_FILENO, "\nfuzz: the input was kept as ", 29);
  WriteAll(STDERR_FILENO, path, std::char_traits<char>::length(path));
  WriteAll(STDERR_FILENO, "\n", 1);
  _exit(1);
}

void InstallHandlers() {
  struct sigaction action = {};
  action.sa_handler = KeepInputAndDie;
  std::vector<int> signals = {SIGABRT, SIGALRM, SIGILL};
#ifndef __SANITIZE_ADDRESS__
  // With AddressSanitizer these stay with it: its report comes first, then abort().
  signals.insert(signals.end(), {SIGSEGV, SIGBUS, SIGFPE});
#endif
  for (const int signal : signals) sigaction(signal, &action, nullptr);
}

void RunOne(const std::string& input, unsigned timeout_s) {
  // A heap copy of just this size: an over-read by one byte is then seen by AddressSanitizer.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  g_input = input.data();
  g_input_size = input.size();
  alarm(timeout_s);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  alarm(0);
}

std::string ReadWhole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> ReadCorpus(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus;
  for (const auto& file : files) corpus.push_back(ReadWhole(file));
  return corpus;
}

bool Take(std::string_view argument, std::string_view flag, std::string& value) {
  if (!argument.starts_with(flag)) return false;
  value = argument.substr(flag.size());
  return true;
}

Options ParseArguments(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    std::string value;
    if (Take(argument, "-runs=", value)) {
      options.runs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (Take(argument, "-max_total_time=", value)) {
      options.max_total_time_s = std::strtod(value.c_str(), nullptr);
    } else if (Take(argument, "-timeout=", value)) {
      options.timeout_s = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    } else if (Take(argument, "-seed=", value)) {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (Take(argument, "-artifact_prefix=", value)) {
      options.artifact_prefix = value;
    } else if (argument.starts_with("-")) {
      std::fprintf(stderr, "fuzz: unknown flag %s\n", argv[i]);
      std::exit(2);
    } else {
      options.paths.emplace_back(argument);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = ParseArguments(argc, argv);
  const std::vector<std::string> corpus = ReadCorpus(options.paths);
  if (corpus.empty()) {
    std::fprintf(stderr, "fuzz: no seeds; name a file or a folder with some\n");
    return 2;
  }
  std::snprintf(g_crash_path, sizeof g_crash_path, "%scrash", options.artifact_prefix.c_str());
  std::snprintf(g_timeout_path, sizeof g_timeout_path, "%stimeout", options.artifact_prefix.c_str());
  InstallHandlers();

  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  for (const std::string& seed : corpus) RunOne(seed, options.timeout_s);
  plumbline::Mutator mutator(corpus, options.seed);
  std::uint64_t runs = 0;
  for (; runs < options.runs && seconds() < options.max_total_time_s; ++runs) {
    RunOne(mutator.Next(), options.timeout_s);
  }
  std::printf("fuzz: %zu seeds and %llu mutations in %.1f s\n", corpus.size(),
              static_cast<unsigned long long>(runs), seconds());
  return 0;
}
