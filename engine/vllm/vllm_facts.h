#pragma once

#include "engine/api/facts.h"
#include "engine/base/json.h"

namespace plumbline {

// The worker's `ready` message, member `facts`, as Facts. Throws Error(kEngineFailed) for one of another
// form.
Facts VllmFacts(const Json& facts);

}  // namespace plumbline
