#pragma once

#include <string>
#include <vector>

namespace plumbline {

// The known word that `word` was most likely meant to be; empty when none is near (more than a third of its
// letters would have to change).
std::string Suggest(const std::string& word, const std::vector<std::string>& known);

}  // namespace plumbline
