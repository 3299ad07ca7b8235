#include "tests/engine/torch/checkpoint/model_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <fstream>

#include "engine/base/json.h"

namespace plumbline {

std::string SafetensorsBytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return bytes + header + data;
}

std::string SafetensorsBytes(const std::vector<TensorToWrite>& tensors) {
  Json header = Json::object();
  std::string data;
  for (const TensorToWrite& tensor : tensors) {
    std::size_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= static_cast<std::size_t>(size);
    const std::size_t begin = data.size();
    if (tensor.values.empty()) {
      data.append(elements * (tensor.dtype == "F32" ? 4 : 2), '\0');
    } else {
      data.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float));
    }
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  return SafetensorsBytes(header.dump(), data);
}

ModelFolder::ModelFolder() {
  static std::atomic<int> count = 0;
  path_ = testing::TempDir() + "plumbline_model_" + std::to_string(getpid()) + "_" + std::to_string(count++);
  std::filesystem::create_directories(path_);
}

ModelFolder::~ModelFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ModelFolder::Write(const std::string& name, const std::string& bytes) const {
  const std::string file = path_ + "/" + name;
  std::ofstream(file, std::ios::binary) << bytes;
  return file;
}

}  // namespace plumbline
