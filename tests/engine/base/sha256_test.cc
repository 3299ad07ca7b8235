#include "engine/base/sha256.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/files.h"

namespace plumbline {
namespace {

// The FIPS 180-4 example.
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, KnownAnswer) {
  EXPECT_EQ(Sha256Hex("abc"), kAbc);
}

TEST(Sha256, PiecesEqualTheWhole) {
  Sha256 hash;
  hash.Update("a", 1);
  hash.Update("bc", 2);
  EXPECT_EQ(hash.FinishHex(), kAbc);
}

TEST(Sha256, FileEqualsItsBytes) {
  const std::string path = testing::TempDir() + "/sha256_test.bin";
  const std::string bytes(3'000'001, 'q');
  WriteFileAtomically(path, bytes);
  EXPECT_EQ(Sha256OfFile(path), Sha256Hex(bytes));
}

TEST(Sha256, MissingFileIsBadInput) {
  EXPECT_THROW(Sha256OfFile("/nonexistent/x"), Error);
}

}  // namespace
}  // namespace plumbline
