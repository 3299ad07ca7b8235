#include "engine/process/descendants.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

namespace plumbline {
namespace {

struct Process {
  pid_t parent = 0;
  char state = '?';
};

// The parent and state from /proc/PID/stat. The program's name stands in brackets and may hold anything, so
// reading starts after the last bracket.
bool ReadProcess(const std::string& folder, Process& process) {
  std::ifstream file(folder + "/stat");
  std::string text;
  if (!std::getline(file, text)) return false;  // it has ended meanwhile
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return false;
  process.state = text[name_end + 2];
  const char* begin = text.data() + name_end + 4;
  return std::from_chars(begin, text.data() + text.size(), process.parent).ec == std::errc();
}

}  // namespace

std::vector<pid_t> Descendants(pid_t ancestor) {
  std::multimap<pid_t, std::pair<pid_t, char>> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    Process process;
    if (bad != std::errc() || end != name.data() + name.size() ||
        !ReadProcess(entry.path().string(), process))
      continue;
    children.emplace(process.parent, std::pair(pid, process.state));
  }
  std::vector<pid_t> found;
  std::vector<pid_t> to_visit = {ancestor};
  while (!to_visit.empty()) {
    const auto [first, last] = children.equal_range(to_visit.back());
    to_visit.pop_back();
    for (auto child = first; child != last; ++child) {
      to_visit.push_back(child->second.first);
      if (child->second.second != 'Z') found.push_back(child->second.first);
    }
  }
  return found;
}

}  // namespace plumbline
