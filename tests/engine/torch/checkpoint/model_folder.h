#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plumbline {

// A tensor to be written: `bytes` of zeros where `data` is empty.
struct TensorToWrite {
  std::string name;
  std::string dtype = "F32";
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // F32 only; empty = zeros
};

// The bytes of a well-formed safetensors file.
std::string SafetensorsBytes(const std::vector<TensorToWrite>& tensors);

// Length prefix, header and data as given, well-formed or not.
std::string SafetensorsBytes(const std::string& header, const std::string& data);

// A fresh folder under the test's temporary folder; removed by the destructor.
class ModelFolder {
 public:
  ModelFolder();
  ~ModelFolder();
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  const std::string& path() const { return path_; }
  // Returns the file's path.
  std::string Write(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

}  // namespace plumbline
