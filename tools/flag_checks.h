#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

// Checks of flag values, for files that include CLI11 already.
namespace plumbline {

// An integer not below `least`.
CLI::Validator AtLeast(std::int64_t least);

// A finite number above 0.
CLI::Validator PositiveNumber();

}  // namespace plumbline
