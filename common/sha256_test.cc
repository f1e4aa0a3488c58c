#include "common/sha256.h"

#include <cstdio>
#include <fstream>

#include "common/status_matchers.h"

namespace solward {
namespace {

using ::solward::testing::IsOkAndHolds;
using ::solward::testing::StatusIs;
using ::testing::HasSubstr;

// FIPS 180-4 examples.
constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kMillionA[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256Test, GivesThePublishedDigests) {
  EXPECT_EQ(Sha256Hex(""), kEmpty);
  EXPECT_EQ(Sha256Hex("abc"), kAbc);
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')), kMillionA);
}

TEST(Sha256Test, PiecesGiveTheDigestOfTheWhole) {
  Sha256 sha;
  sha.Update("a");
  sha.Update("");
  sha.Update("bc");
  EXPECT_EQ(sha.HexDigest(), kAbc);
}

TEST(Sha256Test, MovesWithWhatItHasRead) {
  Sha256 first;
  first.Update("ab");
  Sha256 second = std::move(first);
  second.Update("c");
  EXPECT_EQ(second.HexDigest(), kAbc);
}

TEST(Sha256Test, ReadsAFileWhole) {
  const std::string path = ::testing::TempDir() + "/sha256_test_million";
  std::ofstream(path, std::ios::binary) << std::string(1'000'000, 'a');
  EXPECT_THAT(Sha256OfFile(path), IsOkAndHolds(kMillionA));
  std::remove(path.c_str());
}

TEST(Sha256Test, AFileThatCannotBeReadIsAnErrorThatNamesIt) {
  EXPECT_THAT(Sha256OfFile("/nowhere/x.bin"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/x.bin")));
  EXPECT_FALSE(Sha256OfFile("/").ok()) << "a directory has no digest";
}

}  // namespace
}  // namespace solward
