#pragma once

#include <string>
#include <vector>

namespace plumbline {

struct IncludeLine {
  int line = 0;
  std::string target;   // between the quotes or the angle brackets
  bool angled = false;  // <...>
};

struct SourceFile {
  std::string path;  // from the project's root, with slashes
  std::vector<IncludeLine> includes;
};

// The .h, .cc and .cu files below the given folders of the project, sorted by path.
std::vector<SourceFile> ReadSources(const std::vector<std::string>& folders);

}  // namespace plumbline
