#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "agents/profiling/readers/reader.h"
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

// The name never matters: every file here is called "capture".
absl::StatusOr<v1::CaptureKind> KindOf(const std::string& bytes) {
  return DetectKind(TempFile(bytes).path());
}

TEST(DetectKindTest, EveryCaptureOfTheTestDataByContent) {
  const std::pair<const char*, v1::CaptureKind> cases[] = {
      {"bmm.ncu.raw.csv", v1::CAPTURE_KIND_NCU_CSV_RAW},
      {"bmm.ncu.details.csv", v1::CAPTURE_KIND_NCU_CSV_DETAILS},
      {"bmm.ncu-rep", v1::CAPTURE_KIND_NCU_REPORT},
      {"launch.nsys.sqlite.gz", v1::CAPTURE_KIND_NSYS_SQLITE},
      {"axpy.nsys.sqlite.gz", v1::CAPTURE_KIND_NSYS_SQLITE},
      {"launch.torch.json.gz", v1::CAPTURE_KIND_TORCH_TRACE},
      {"comm.rank1.torch.json.gz", v1::CAPTURE_KIND_TORCH_TRACE},
      {"nvidia-smi-query.csv", v1::CAPTURE_KIND_NVIDIA_SMI_CSV},
      {"nvidia-smi-q.xml", v1::CAPTURE_KIND_NVIDIA_SMI_XML},
  };
  for (const auto& [name, kind] : cases) {
    EXPECT_THAT(KindOf(FileBytes(SourcePath(std::string("tests/data/h200/") + name))),
                IsOkAndHolds(kind))
        << name;
  }
}

TEST(DetectKindTest, ProgramOutputBeforeTheHeaderDoesNotHideAnNcuCsv) {
  const std::string csv = FileBytes(SourcePath("tests/data/h200/axpy.ncu.details.csv"));
  EXPECT_THAT(KindOf("loss 0.25\n==PROF== Connected to process 965\n" + csv),
              IsOkAndHolds(v1::CAPTURE_KIND_NCU_CSV_DETAILS));
  std::string chatter;
  while (chatter.size() < (2 << 20)) chatter += "step 17, loss 0.25\n";
  EXPECT_THAT(KindOf(chatter + csv), IsOkAndHolds(v1::CAPTURE_KIND_NCU_CSV_DETAILS));
}

TEST(DetectKindTest, KinetoIsToldFromLookAlikes) {
  EXPECT_THAT(KindOf(R"({"schemaVersion": 1, "traceEvents": []})"),
              IsOkAndHolds(v1::CAPTURE_KIND_TORCH_TRACE));
  // A build of 2020 without schemaVersion.
  EXPECT_THAT(KindOf(R"({"traceEvents": [{"ph": "X", "cat": "Operator", "name": "aten::add"}]})"),
              IsOkAndHolds(v1::CAPTURE_KIND_TORCH_TRACE));
  EXPECT_THAT(KindOf(R"({"traceEvents": [{"ph": "X", "cat": "app", "name": "frame", "ts": 1}]})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("without the marks")));
  EXPECT_THAT(KindOf(R"([{"ph": "X", "name": "aten::add", "ts": 1, "dur": 2}])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bare list")));
  EXPECT_THAT(KindOf(R"({"schema": "1.0.1", "nodes": [{"name": "x", "id": 2, "rf_id": 0}]})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("execution trace")));
  EXPECT_THAT(KindOf(R"({"rocprofiler-sdk-tool": [{"metadata": {}}]})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rocprofv3")));
  EXPECT_THAT(KindOf(R"([[-1, 1, 37888, 7], [-1, 1, 512, 7]])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no torch.profiler trace")));
}

TEST(DetectKindTest, WhatIsNoCaptureIsCalledByItsName) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "empty"},
      {" \n\n", "white space"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n", "Git LFS pointer"},
      {"<!DOCTYPE html><html><body>Sign in</body></html>", "HTML"},
      {std::string("\x7f"
                   "ELF\2\1\1\0\0\0",
                   10),
       "ELF"},
      {"PK\x03\x04....", "zip archive"},
      {"Field \"utilisation.gpu\" is not a valid field to query.\n", "unknown"},
      {"==PROF== Connected\n    Section: GPU Speed Of Light Throughput\n", "--page raw --csv"},
      {"+---+\n| NVIDIA-SMI 550.90.07   Driver Version: 550.90.07 |\n", "nvidia-smi -q -x"},
      {std::string("\1\2\3\0\4\5\6\7", 8), "binary data"},
      {"hello world\n", "text of no kind"},
      {"\"Process ID\",\"Kernel Name\",\"Invocations\",\"Section Name\",\"Metric Name\"\n",
       "--print-summary"},
  };
  for (const auto& [bytes, words] : cases) {
    EXPECT_THAT(KindOf(bytes), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)))
        << words;
  }
  EXPECT_THAT(DetectKind(SourcePath("tests/data/h200/launch.nsys-stats.csv")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nsys stats")));
}

TEST(DetectKindTest, ATruncatedGzipIsKnownByWhatWasReadableOrSaysSo) {
  const std::string gz = FileBytes(SourcePath("tests/data/h200/launch.torch.json.gz"));
  EXPECT_THAT(KindOf(gz.substr(0, gz.size() / 2)), IsOkAndHolds(v1::CAPTURE_KIND_TORCH_TRACE));
  EXPECT_THAT(KindOf(gz.substr(0, 12)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("truncated gzip")));
}

TEST(DetectKindTest, AnotherProgramsSqliteIsRefusedWithItsTables) {
  const TempFile file("");
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.path().c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "CREATE TABLE dlprof_ops (id INTEGER)", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  EXPECT_THAT(DetectKind(file.path()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("SQLite"), HasSubstr("dlprof_ops"))));
  EXPECT_THAT(KindOf(std::string("SQLite format 3\0garbage", 23)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("damaged")));
}

TEST(DetectKindTest, NsightSystemsReportsAreRecognised) {
  EXPECT_THAT(KindOf(std::string("\x0a\x00\x12\x01QuadDCommon::Version", 24)),
              IsOkAndHolds(v1::CAPTURE_KIND_NSYS_REPORT));
}

TEST(KindNameTest, ReadsInASentence) {
  EXPECT_EQ(KindName(v1::CAPTURE_KIND_NSYS_SQLITE), "nsys SQLite export");
  EXPECT_EQ(KindName(v1::CAPTURE_KIND_NCU_CSV_RAW), "ncu CSV (raw page)");
}

}  // namespace
}  // namespace solward::readers
