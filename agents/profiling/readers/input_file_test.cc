#include "agents/profiling/readers/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zstd.h>

#include "agents/profiling/readers/test_files.h"
#include "common/status_matchers.h"

namespace solward::readers {
namespace {

using ::solward::testing::FileBytes;
using ::solward::testing::Gzip;
using ::solward::testing::IsOkAndHolds;
using ::solward::testing::SourcePath;
using ::solward::testing::StatusIs;
using ::solward::testing::TempFile;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Zstd(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

std::string Sample() {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i * 7919) + "\n";
  return text;
}

absl::StatusOr<std::string> ReadAll(const std::string& path, uint64_t most = 1ull << 30) {
  return ReadWholeFile(path, ReaderLimits(), most);
}

TEST(InputFileTest, PlainGzipAndZstdGiveTheSameBytes) {
  const std::string text = Sample();
  EXPECT_THAT(ReadAll(TempFile(text).path()), IsOkAndHolds(text));
  EXPECT_THAT(ReadAll(TempFile(Gzip(text)).path()), IsOkAndHolds(text));
  EXPECT_THAT(ReadAll(TempFile(Zstd(text)).path()), IsOkAndHolds(text));
}

TEST(InputFileTest, SeveralMembersInARowAreOneStream) {
  EXPECT_THAT(ReadAll(TempFile(Gzip("one ") + Gzip("two") + std::string(512, '\0')).path()),
              IsOkAndHolds("one two"));
  EXPECT_THAT(ReadAll(TempFile(Zstd("one ") + Zstd("two")).path()), IsOkAndHolds("one two"));
}

TEST(InputFileTest, ATruncatedFileSaysHowMuchWasReadable) {
  const std::string text = Sample();
  for (const std::string& whole : {Gzip(text), Zstd(text)}) {
    TempFile file(whole.substr(0, whole.size() / 2), "half.json.gz");
    EXPECT_THAT(ReadAll(file.path()),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("half.json.gz"), HasSubstr("truncated"),
                               HasSubstr("bytes were readable"))));
    absl::Status end;
    ASSERT_OK_AND_ASSIGN(const std::string head,
                         ReadHead(file.path(), ReaderLimits(), text.size(), &end));
    EXPECT_GT(head.size(), 1000u);
    EXPECT_THAT(text, StartsWith(head));
    EXPECT_EQ(ErrorReason(end), "CAPTURE_TRUNCATED");
  }
}

TEST(InputFileTest, DamagedBytesAreCorruptNotACrash) {
  std::string bytes = Gzip(Sample());
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 64; ++i) bytes[i] ^= 0x5a;
  EXPECT_THAT(ReadAll(TempFile(bytes).path()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("corrupt gzip")));
}

TEST(InputFileTest, ABombEndsAtTheLimit) {
  const TempFile bomb(Gzip(std::string(64 << 20, '\0')));
  EXPECT_THAT(ReadAll(bomb.path(), 1 << 20),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_decompressed_bytes")));
  ReaderLimits limits;
  limits.max_decompressed_bytes = 1 << 20;
  EXPECT_THAT(PlainFile::Make(bomb.path(), limits).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_decompressed_bytes")));
}

TEST(InputFileTest, EmptyAndMissingFilesAndFoldersAreNamed) {
  EXPECT_THAT(ReadAll(TempFile("", "nothing.csv").path()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("nothing.csv"), HasSubstr("empty"))));
  EXPECT_THAT(ReadAll("/nowhere/x.csv"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("x.csv")));
  EXPECT_THAT(ReadAll("/tmp"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("regular")));
}

TEST(PlainFileTest, DecompressesToAPrivateFileThatDisappears) {
  const std::string capture = SourcePath("tests/data/h200/axpy.nsys.sqlite.gz");
  std::string path;
  {
    ASSERT_OK_AND_ASSIGN(PlainFile plain, PlainFile::Make(capture, ReaderLimits()));
    path = plain.path();
    EXPECT_TRUE(plain.temporary());
    EXPECT_THAT(FileBytes(path), StartsWith("SQLite format 3"));
    struct stat info = {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  struct stat info = {};
  EXPECT_NE(stat(path.c_str(), &info), 0);
}

TEST(PlainFileTest, APlainFileIsUsedWhereItLies) {
  const TempFile file("SQLite format 3");
  ASSERT_OK_AND_ASSIGN(PlainFile plain, PlainFile::Make(file.path(), ReaderLimits()));
  EXPECT_FALSE(plain.temporary());
  EXPECT_EQ(plain.path(), file.path());
}

}  // namespace
}  // namespace solward::readers
