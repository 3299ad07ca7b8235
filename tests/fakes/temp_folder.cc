#include "tests/fakes/temp_folder.h"

#include <stdlib.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace plumbline {

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "plumbline_test.XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder: " + pattern);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::Write(std::string_view name, std::string_view bytes) const {
  const std::filesystem::path path = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

}  // namespace plumbline
