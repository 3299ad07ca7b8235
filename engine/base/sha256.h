#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace plumbline {

// SHA-256 as lower-case hex (OpenSSL underneath).
std::string Sha256Hex(std::string_view bytes);

// The same over data that arrives in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(const void* data, std::size_t bytes);
  // Ends the digest; the object must not be updated after it.
  std::string FinishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads the file in blocks. Throws Error(kBadInput) when it cannot be read.
std::string Sha256OfFile(const std::string& path);

}  // namespace plumbline
