#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tools/command.h"

namespace {

// Plug-ins lie beside the programs (build tree and installed tree alike) and where the user says.
void AddPluginFolders(plumbline::EngineRegistry& engines) {
  if (const char* path = std::getenv("PLUMBLINE_ENGINE_PATH")) {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (!folder.empty()) engines.AddPluginFolder(folder);
    }
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) engines.AddPluginFolder((program.parent_path().parent_path() / "lib").string());
}

}  // namespace

int main(int argc, char** argv) {
  plumbline::Tools tools;
  AddPluginFolders(tools.engines);
  return plumbline::RunPlumb({argv + 1, argv + argc}, tools);
}
