#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/api/engine.h"

namespace plumbline {

// How an engine kind is known to the programs. Registration is explicit: a main or a plug-in's entry function
// calls Register; there are no static initialisers, which linkers drop.
struct EngineKind {
  std::string kind;
  std::string help;  // one line for `plumb run --help`, then the accepted --engine-arg keys
  // Refuses by name what this kind cannot honour, before anything expensive happens. Throws Error(kBadInput).
  std::function<void(const EngineSpec&)> check;
  // Throws Error(kEngineFailed) when it does not start, Error(kBadInput) for a bad model folder,
  // Error(kSkipped) when a device or an interpreter is absent.
  std::function<std::unique_ptr<Engine>(const EngineSpec&)> boot;
};

class EngineRegistry {
 public:
  // A second kind of the same name throws std::logic_error.
  void Register(EngineKind kind);

  // Registers what lies in the shared object: it exports `extern "C" void
  // PlumblineRegisterEngines(EngineRegistry&)`. The object stays loaded for the rest of the process. Throws
  // Error(kEngineFailed) with the loader's reason.
  void LoadPlugin(const std::string& path);

  // A kind that is not registered but has a plug-in `libplumbline_<kind>.so` in one of these folders is
  // loaded when it is first asked for.
  void AddPluginFolder(const std::string& folder);

  // The folders of PLUMBLINE_ENGINE_PATH (separated by colons), then ../lib beside the running program, where
  // the build tree and an installed tree keep theirs.
  void AddDefaultPluginFolders();

  // Throws Error(kBadInput) naming the known kinds.
  const EngineKind& Find(const std::string& kind);

  // Finds the kind and lets it refuse what it cannot honour, so that a caller can do so before other work.
  void Check(const EngineSpec& spec);

  // Checks, then boots.
  std::unique_ptr<Engine> Boot(const EngineSpec& spec);

  // Registered kinds and those with a plug-in file, sorted. Loads nothing.
  std::vector<std::string> Kinds() const;

 private:
  std::vector<EngineKind> kinds_;
  std::vector<std::string> folders_;
};

}  // namespace plumbline

// The one symbol of an engine plug-in.
extern "C" void PlumblineRegisterEngines(plumbline::EngineRegistry& registry);
