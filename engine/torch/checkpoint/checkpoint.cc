#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/torch/checkpoint/safetensors.h"
#include "engine/torch/checkpoint/weight_source.h"

namespace plumbline {
namespace {

constexpr std::size_t kNamesShown = 4;

std::string Quote(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kNamesShown) text += " and " + std::to_string(names.size() - kNamesShown) + " more";
  return text;
}

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

bool IsReadableType(const std::string& dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

struct Place {
  std::size_t file = 0;
  const SafetensorsEntry* entry = nullptr;
};

class Checkpoint final : public WeightSource {
 public:
  // `listing` is the file that says what belongs to the checkpoint: the index, or the only file.
  Checkpoint(std::string listing, const std::vector<std::string>& paths) : listing_(std::move(listing)) {
    files_.reserve(paths.size());  // entries are pointed to: the vector must not move
    for (const std::string& path : paths) {
      const SafetensorsFile& file = files_.emplace_back(path);
      for (const SafetensorsEntry& entry : file.entries()) {
        const auto [known, added] = places_.emplace(entry.name, Place{files_.size() - 1, &entry});
        if (!added) {
          ThrowBadInput({.file = path,
                         .field = "tensor " + entry.name,
                         .problem = "occurs in another shard as well: " + files_[known->second.file].path()});
        }
      }
    }
  }

  void CheckAgainst(const ModelConfig& config) const {
    std::vector<std::string> missing;
    std::set<std::string> wanted;
    for (const TensorSpec& tensor : ListTensors(config)) {
      wanted.insert(tensor.name);
      const auto found = places_.find(tensor.name);
      if (found == places_.end()) {
        missing.push_back(tensor.name);
      } else {
        CheckTensor(tensor, found->second);
      }
    }
    if (!missing.empty()) {
      ThrowBadInput({.file = listing_,
                     .problem = "lacks " + std::to_string(missing.size()) + " of the tensors that " +
                                config.architecture + " needs: " + Quote(missing)});
    }
    std::vector<std::string> extra;
    for (const auto& [name, place] : places_) {
      if (!wanted.contains(name) && !MayBeLeftUnread(config, name)) extra.push_back(name);
    }
    std::sort(extra.begin(), extra.end());
    if (!extra.empty()) {
      ThrowBadInput({.file = listing_,
                     .problem = "has " + std::to_string(extra.size()) + " tensors that " +
                                config.architecture +
                                " with this config.json does not use: " + Quote(extra)});
    }
  }

  // A tensor listed for one shard must lie there.
  void CheckPlaces(const std::map<std::string, std::string>& path_of_tensor) const {
    std::vector<std::string> absent;
    for (const auto& [name, path] : path_of_tensor) {
      const auto found = places_.find(name);
      if (found == places_.end() || files_[found->second.file].path() != path) absent.push_back(name);
    }
    if (!absent.empty()) {
      ThrowBadInput({.file = listing_,
                     .field = "weight_map",
                     .problem = "names tensors that are not in the shard that it says: " + Quote(absent)});
    }
    std::vector<std::string> unlisted;
    for (const auto& [name, place] : places_) {
      if (!path_of_tensor.contains(name)) unlisted.push_back(name);
    }
    std::sort(unlisted.begin(), unlisted.end());
    if (!unlisted.empty()) {
      ThrowBadInput({.file = listing_,
                     .field = "weight_map",
                     .problem = "does not list tensors that are in its shards: " + Quote(unlisted)});
    }
  }

  void Read(const TensorSpec& tensor, std::span<float> out) override {
    const Place& place = places_.at(tensor.name);
    files_[place.file].Read(*place.entry, out);
  }

 private:
  void CheckTensor(const TensorSpec& tensor, const Place& place) const {
    const std::string& path = files_[place.file].path();
    if (place.entry->shape != tensor.shape) {
      ThrowBadInput({.file = path,
                     .field = "tensor " + tensor.name,
                     .value = ShapeText(place.entry->shape),
                     .problem = "does not have the shape that config.json calls for",
                     .accepted = ShapeText(tensor.shape)});
    }
    if (!IsReadableType(place.entry->dtype)) {
      ThrowBadInput({.file = path,
                     .field = "tensor " + tensor.name,
                     .value = place.entry->dtype,
                     .problem = "is a dtype that weights cannot have here",
                     .accepted = "F32, F16, BF16"});
    }
  }

  std::string listing_;
  std::vector<SafetensorsFile> files_;
  std::unordered_map<std::string, Place> places_;
};

// Tensor name to the path of its shard. The names of shards are plain: an index cannot reach outside its
// folder.
std::map<std::string, std::string> ReadIndex(const std::string& folder, const std::string& path) {
  const Json json = ReadJsonFile(path);
  const JsonView map = JsonView(json, path).Object("weight_map");
  map.RequireObject();
  std::map<std::string, std::string> path_of_tensor;
  for (const auto& [tensor, shard] : map.json().items()) {
    const JsonView view(shard, path, 0, "weight_map." + tensor);
    const std::string name = view.AsString();
    if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") {
      view.Fail("must be the name of a file in the same folder");
    }
    path_of_tensor[tensor] = folder + "/" + name;
  }
  if (path_of_tensor.empty()) map.Fail("lists no tensor");
  return path_of_tensor;
}

}  // namespace

std::unique_ptr<WeightSource> OpenCheckpoint(const std::string& model_folder, const ModelConfig& config) {
  const std::string single = model_folder + "/model.safetensors";
  const std::string index = single + ".index.json";
  const bool has_single = std::filesystem::exists(single);
  const bool has_index = std::filesystem::exists(index);
  if (has_single == has_index) {
    ThrowBadInput({.file = model_folder,
                   .problem = has_single
                                  ? "holds both a single checkpoint and a sharded one: remove one of them"
                                  : "holds no weights",
                   .accepted = "model.safetensors, or model.safetensors.index.json with its shards, or "
                               "--load-format dummy"});
  }
  std::unique_ptr<Checkpoint> checkpoint;
  if (has_single) {
    checkpoint = std::make_unique<Checkpoint>(single, std::vector{single});
  } else {
    const std::map<std::string, std::string> path_of_tensor = ReadIndex(model_folder, index);
    std::set<std::string> paths;
    for (const auto& [tensor, path] : path_of_tensor) paths.insert(path);
    checkpoint = std::make_unique<Checkpoint>(index, std::vector(paths.begin(), paths.end()));
    checkpoint->CheckPlaces(path_of_tensor);
  }
  checkpoint->CheckAgainst(config);
  return checkpoint;
}

}  // namespace plumbline
