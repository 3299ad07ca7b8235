#include "tests/ci/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

namespace plumbline {
namespace {

SourceFile ReadSource(const std::filesystem::path& root, const std::filesystem::path& path) {
  static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  SourceFile source{.path = std::filesystem::relative(path, root).generic_string(), .includes = {}};
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::smatch match;
    if (std::regex_search(line, match, include)) {
      source.includes.push_back({.line = number, .target = match[2], .angled = match[1] == "<"});
    }
  }
  return source;
}

}  // namespace

std::vector<SourceFile> ReadSources(const std::vector<std::string>& folders) {
  const std::filesystem::path root = PLUMBLINE_SOURCE_DIR;
  std::vector<SourceFile> sources;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".h" || extension == ".cc" || extension == ".cu") {
        sources.push_back(ReadSource(root, entry.path()));
      }
    }
  }
  std::sort(sources.begin(), sources.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return sources;
}

}  // namespace plumbline
