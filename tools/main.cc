#include "engine/scripted/scripted_engine.h"
#include "engine/vllm/vllm_engine.h"
#include "fixtures/profile/simulated_kind.h"
#include "tools/command.h"

int main(int argc, char** argv) {
  plumbline::Tools tools;
  plumbline::RegisterScriptedEngine(tools.engines);
  plumbline::RegisterSimulatedEngine(tools.engines);
  plumbline::RegisterVllmEngine(tools.engines);
  tools.engines.AddDefaultPluginFolders();
  return plumbline::RunPlumb({argv + 1, argv + argc}, tools);
}
