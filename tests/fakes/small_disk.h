#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace plumbline {

// Runs `body` in a child process whose `folder` is a file system of its own of `bytes` bytes (a tmpfs in a
// mount namespace, inside a user namespace where the caller is not root). The files are gone when it ends, so
// the body does its own checks. Returns what the body returned, 1 where an exception left it, or nothing
// where this machine allows no such mount: the test then skips by name.
std::optional<int> RunOnSmallDisk(const std::string& folder, std::size_t bytes,
                                  const std::function<int()>& body);

}  // namespace plumbline
