// Who may include whom. The project's parts stay parts only as long as nobody reaches around the seams.
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/ci/source_tree.h"

namespace plumbline {
namespace {

using Parts = std::set<std::string>;

// A part and the parts that it may include beside itself. A part that is not listed may include nothing: a
// new folder has to be entered here.
const std::map<std::string, Parts>& Allowed() {
  static const std::map<std::string, Parts> allowed = {
      {"engine/base", {}},
      {"engine/clock", {"engine/base"}},
      {"engine/process", {"engine/base", "engine/clock"}},
      {"engine/api", {"engine/base", "engine/clock"}},
      {"engine/core", {"engine/base", "engine/clock", "engine/api"}},
      {"engine/scripted", {"engine/base", "engine/clock", "engine/api", "engine/core"}},
      {"engine/simulated", {"engine/base", "engine/clock", "engine/api", "engine/core"}},
      {"engine/kernels", {"engine/base"}},
      {"engine/torch", {"engine/base", "engine/clock", "engine/api", "engine/core", "engine/kernels"}},
      {"engine/parallel", {"engine/base", "engine/process"}},
      {"engine/vllm", {"engine/base", "engine/clock", "engine/api", "engine/process"}},
      {"engine/openai", {"engine/base", "engine/clock", "engine/api", "engine/process"}},
      {"engine/server", {"engine/base", "engine/clock", "engine/api", "engine/process"}},
      {"fixtures/record", {"engine/base"}},
      {"fixtures/workload", {"engine/base", "engine/clock", "engine/api", "fixtures/record"}},
      {"fixtures/judge", {"engine/base", "fixtures/record"}},
      {"fixtures/run", {"engine/base", "fixtures/record"}},
      {"fixtures/compare", {"engine/base", "fixtures/record", "fixtures/judge", "fixtures/run"}},
      {"fixtures/report", {"engine/base", "engine/process", "fixtures/record", "fixtures/judge"}},
      {"fixtures/replay",
       {"engine/base", "engine/clock", "engine/api", "fixtures/record", "fixtures/workload"}},
      {"fixtures/profile",
       {"engine/base", "engine/clock", "engine/api", "engine/simulated", "fixtures/record",
        "fixtures/workload", "fixtures/replay", "fixtures/run"}},
      {"fixtures/load",
       {"engine/base", "engine/clock", "engine/api", "fixtures/record", "fixtures/workload",
        "fixtures/replay", "fixtures/run", "fixtures/judge"}},
      // The top of fixtures joins engines and judging, but knows no engine: those come through the registry.
      {"fixtures",
       {"engine/base", "engine/clock", "engine/api", "fixtures/record", "fixtures/workload",
        "fixtures/replay", "fixtures/run", "fixtures/judge", "fixtures/report", "fixtures/profile",
        "fixtures/load", "fixtures/compare"}},
  };
  return allowed;
}

// suites and tools may include everything but each other; nothing includes them.
bool IsTop(const std::string& part) {
  return part == "suites" || part == "tools";
}

// "engine/kernels/cpu/x.h" -> "engine/kernels"; "fixtures/suite_main.h" -> "fixtures"; "tools/x.h" ->
// "tools".
std::string PartOf(const std::string& path) {
  const std::size_t first = path.find('/');
  if (first == std::string::npos) return "";
  const std::string top = path.substr(0, first);
  if (top != "engine" && top != "fixtures") return top;
  const std::size_t second = path.find('/', first + 1);
  return second == std::string::npos ? top : path.substr(0, second);
}

bool MayInclude(const std::string& from, const std::string& to) {
  if (from == to) return true;
  if (IsTop(to)) return false;
  if (IsTop(from)) return to.starts_with("engine/") || to.starts_with("fixtures");
  const auto entry = Allowed().find(from);
  return entry != Allowed().end() && entry->second.contains(to);
}

const std::vector<SourceFile>& Sources() {
  static const std::vector<SourceFile> sources = ReadSources({"engine", "fixtures", "suites", "tools"});
  return sources;
}

TEST(Layering, IncludesFollowTheDirectionOfTheDesign) {
  ASSERT_GT(Sources().size(), 50u);
  for (const SourceFile& source : Sources()) {
    for (const IncludeLine& include : source.includes) {
      // A quoted name without a folder is a generated header of the same part.
      if (include.angled || include.target.find('/') == std::string::npos) continue;
      EXPECT_TRUE(MayInclude(PartOf(source.path), PartOf(include.target)))
          << source.path << ":" << include.line << ": " << PartOf(source.path) << " must not include "
          << include.target;
    }
  }
}

TEST(Layering, TheRulesForbidWhatTheyShould) {
  EXPECT_FALSE(MayInclude("engine/base", "engine/api"));
  EXPECT_FALSE(MayInclude("fixtures/judge", "fixtures/run"));
  EXPECT_FALSE(MayInclude("fixtures", "engine/torch"));
  EXPECT_FALSE(MayInclude("engine/core", "fixtures/record"));
  EXPECT_FALSE(MayInclude("fixtures", "tools"));
  EXPECT_FALSE(MayInclude("suites", "tools"));
  EXPECT_FALSE(MayInclude("engine/unheard_of", "engine/base"));
  EXPECT_TRUE(MayInclude("tools", "engine/torch"));
}

struct LibraryRule {
  const char* library;
  std::regex header;
  std::vector<std::string> parts;  // "" = a file at the top of the folder
};

TEST(Layering, LibrariesStayWhereTheyBelong) {
  const std::vector<LibraryRule> rules = {
      {"libtorch", std::regex("^(torch|ATen|c10)/"), {"engine/torch"}},
      {"oneDNN", std::regex("^(dnnl|oneapi)"), {"engine/torch"}},
      {"Google Benchmark", std::regex("^benchmark/"), {"fixtures", "suites"}},
      {"HTTP", std::regex("^boost/beast"), {"engine/openai", "engine/server"}},
      {"child processes", std::regex("^(boost/process|spawn\\.h|sys/wait\\.h)"), {"engine/process"}},
      {"CUDA and NCCL", std::regex("^(cuda|nccl)"), {"engine/parallel", "engine/kernels", "engine/torch"}},
      {"the command line parser", std::regex("^CLI/"), {"tools", "fixtures"}},
  };
  for (const SourceFile& source : Sources()) {
    for (const IncludeLine& include : source.includes) {
      for (const LibraryRule& rule : rules) {
        if (!std::regex_search(include.target, rule.header)) continue;
        const std::string part = PartOf(source.path);
        EXPECT_NE(std::find(rule.parts.begin(), rule.parts.end(), part), rule.parts.end())
            << source.path << ":" << include.line << ": " << rule.library << " does not belong in " << part;
      }
    }
  }
}

}  // namespace
}  // namespace plumbline
