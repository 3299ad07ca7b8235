#pragma once

#include <sys/types.h>

#include <vector>

namespace plumbline {

// All processes that descend from `ancestor`, zombies left out, as /proc has them at this moment.
std::vector<pid_t> Descendants(pid_t ancestor);

}  // namespace plumbline
