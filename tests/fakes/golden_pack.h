#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace plumbline {

// The checkout or pack of the reference simulator that tests read: PLUMBLINE_GOLDEN_PATH, else the folder
// beside the sources where it exists. Empty = there is none; the test skips by name.
inline std::string GoldenPack() {
  if (const char* path = std::getenv("PLUMBLINE_GOLDEN_PATH"); path != nullptr && *path != '\0') return path;
  const std::filesystem::path beside =
      std::filesystem::path(PLUMBLINE_SOURCE_DIR) / "../shared/packs/llmservingsim";
  return std::filesystem::is_directory(beside) ? beside.lexically_normal().string() : "";
}

}  // namespace plumbline
