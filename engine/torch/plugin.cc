#include "engine/torch/torch_engine.h"

__attribute__((visibility("default"))) void PlumblineRegisterEngines(plumbline::EngineRegistry& registry) {
  plumbline::RegisterTorchEngine(registry);
}
