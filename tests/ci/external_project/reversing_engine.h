#pragma once

#include "engine/api/registry.h"

// Registers the kind "reversing": an engine that answers each request with its prompt in reverse, over and
// over.
void RegisterReversingEngine(plumbline::EngineRegistry& registry);
