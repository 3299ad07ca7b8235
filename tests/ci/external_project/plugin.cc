#include "reversing_engine.h"

extern "C" void PlumblineRegisterEngines(plumbline::EngineRegistry& registry) {
  RegisterReversingEngine(registry);
}
