#pragma once

#include <string>
#include <string_view>

namespace plumbline {

// The whole file. Throws Error(kBadInput) naming the path and the reason (missing, a folder, no permission).
std::string ReadFile(const std::string& path);

// Writes beside the target, syncs, then renames: the target is the old file or the new one, never a part.
// Throws Error(kInterrupted) naming the path and the reason (disk full, no permission).
void WriteFileAtomically(const std::string& path, std::string_view bytes);

// Creates the folder and its parents. Throws Error(kInterrupted).
void MakeFolders(const std::string& path);

}  // namespace plumbline
