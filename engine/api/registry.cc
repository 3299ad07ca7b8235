#include "engine/api/registry.h"

#include <dlfcn.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>

#include "engine/base/error.h"

namespace plumbline {
namespace {

constexpr const char* kPrefix = "libplumbline_";
constexpr const char* kSuffix = ".so";

}  // namespace

const char* Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kCancelled:
      return "abort";
    case FinishReason::kRefused:
      return "refused";
    case FinishReason::kError:
      return "error";
  }
  return "none";
}

void EngineRegistry::Register(EngineKind kind) {
  for (const EngineKind& known : kinds_) {
    if (known.kind == kind.kind) throw std::logic_error("engine kind registered twice: " + kind.kind);
  }
  kinds_.push_back(std::move(kind));
}

void EngineRegistry::LoadPlugin(const std::string& path) {
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) throw Error(ExitCode::kEngineFailed, path + ": cannot be loaded: " + dlerror());
  auto* entry = reinterpret_cast<void (*)(EngineRegistry&)>(dlsym(object, "PlumblineRegisterEngines"));
  if (entry == nullptr) {
    throw Error(ExitCode::kEngineFailed,
                path + ": is no engine plug-in: it exports no PlumblineRegisterEngines");
  }
  entry(*this);
}

void EngineRegistry::AddPluginFolder(const std::string& folder) {
  folders_.push_back(folder);
}

void EngineRegistry::AddDefaultPluginFolders() {
  const char* path = std::getenv("PLUMBLINE_ENGINE_PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty()) AddPluginFolder(folder);
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) AddPluginFolder((program.parent_path().parent_path() / "lib").string());
}

std::vector<std::string> EngineRegistry::Kinds() const {
  std::set<std::string> names;
  for (const EngineKind& kind : kinds_) names.insert(kind.kind);
  for (const std::string& folder : folders_) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      std::string name = entry.path().filename().string();
      if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) {
        name = name.substr(std::string_view(kPrefix).size());
        names.insert(name.substr(0, name.size() - std::string_view(kSuffix).size()));
      }
    }
  }
  return {names.begin(), names.end()};
}

const EngineKind& EngineRegistry::Find(const std::string& kind) {
  const auto registered = [&]() -> const EngineKind* {
    const auto found =
        std::find_if(kinds_.begin(), kinds_.end(), [&](const EngineKind& k) { return k.kind == kind; });
    return found == kinds_.end() ? nullptr : &*found;
  };
  if (const EngineKind* known = registered()) return *known;
  for (const std::string& folder : folders_) {
    const std::string path = folder + "/" + kPrefix + kind + kSuffix;
    if (kind.find('/') != std::string::npos || !std::filesystem::exists(path)) continue;
    LoadPlugin(path);
    if (const EngineKind* known = registered()) return *known;
    throw Error(ExitCode::kEngineFailed, path + ": registered no engine of kind '" + kind + "'");
  }
  std::string known;
  for (const std::string& name : Kinds()) known += (known.empty() ? "" : ", ") + name;
  ThrowBadInput(
      {.field = "--engine", .value = kind, .problem = "is not an engine of this build", .accepted = known});
}

void EngineRegistry::Check(const EngineSpec& spec) {
  const EngineKind& kind = Find(spec.kind);
  if (kind.check) kind.check(spec);
}

std::unique_ptr<Engine> EngineRegistry::Boot(const EngineSpec& spec) {
  Check(spec);
  return Find(spec.kind).boot(spec);
}

}  // namespace plumbline
