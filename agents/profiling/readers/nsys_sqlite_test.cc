#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agents/profiling/readers/input_file.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/temp_capture.h"
#include "agents/profiling/timeline/time_model.h"
#include "common/status_matchers.h"

namespace solward::readers {
namespace {

using solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using timeline::GpuOpKind;
using timeline::HostMemory;
using timeline::Timeline;

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// An SQLite file with what the statements put into it.
class Database {
 public:
  explicit Database(const std::string& sql) : file_("") {
    sqlite3* db = nullptr;
    char* error = nullptr;
    const std::string whole = "PRAGMA synchronous = OFF; BEGIN;" + sql + "COMMIT;";
    if (sqlite3_open(file_.path().c_str(), &db) != SQLITE_OK ||
        sqlite3_exec(db, whole.c_str(), nullptr, nullptr, &error) != SQLITE_OK) {
      ADD_FAILURE() << (error != nullptr ? error : "cannot open");
    }
    sqlite3_free(error);
    sqlite3_close(db);
  }
  const std::string& path() const { return file_.path(); }
  absl::StatusOr<Timeline> Read(const ReaderLimits& limits = {}) const {
    return ReadNsysSqlite(path(), limits);
  }

 private:
  TempCapture file_;
};

constexpr char kMeta[] =
    "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
    "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2025.3.2.0');"
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'void k<float>(int)'),"
    " (3, 'step'), (4, 'cudaGraphLaunch_v10000'), (5, 'k');";
constexpr char kRuntime[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER,"
    " globalTid INTEGER, correlationId INTEGER, nameId INTEGER);";
constexpr char kKernelTable[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,"
    " shortName INTEGER, graphNodeId INTEGER);";
constexpr char kMemcpyTable[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,"
    " srcKind INTEGER, dstKind INTEGER);";

// Process 702, thread 743, of virtual machine `vm`.
int64_t GlobalTid(int64_t pid = 702, int64_t tid = 743, int64_t vm = 1) {
  return vm << 48 | pid << 24 | tid;
}
int64_t GlobalPid(int64_t pid = 702, int64_t vm = 1) { return vm << 48 | pid << 24; }

std::string Call(int64_t start, int64_t end, int64_t correlation, int64_t tid = GlobalTid(),
                 int name = 1) {
  return absl::StrCat("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (", start, ",", end, ",0,",
                      tid, ",", correlation, ",", name, ");");
}
std::string Kernel(int64_t start, int64_t end, int64_t correlation, int64_t pid = GlobalPid(),
                   int device = 0, const char* node = "NULL") {
  return absl::StrCat("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (", start, ",", end, ",",
                      device, ",7,", correlation, ",", pid, ",2,5,", node, ");");
}

uint64_t Statistic(const Timeline& timeline, const std::string& name) {
  for (const v1::ParseStatistic& s : timeline.statistics) {
    if (s.name() == name) return s.count();
  }
  return 0;
}

const timeline::GpuOps& Ops(const Timeline& timeline) {
  static const timeline::GpuOps kNone;
  if (timeline.processes.size() != 1 || timeline.processes[0].lanes.size() != 1) {
    ADD_FAILURE() << "expected one process with one device";
    return kNone;
  }
  return timeline.processes[0].lanes[0].ops;
}

TEST(NsysSqlite, BecomesOperationsAndCalls) {
  const Database db(
      absl::StrCat(kMeta, kRuntime, kKernelTable, Call(100, 110, 9), Kernel(120, 150, 9)));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_EQ(t.tool, "nsys");
  EXPECT_EQ(t.tool_version, "2025.3.2.0");
  EXPECT_EQ(t.kernel_table, "CUPTI_ACTIVITY_KIND_KERNEL");
  EXPECT_EQ(t.call_table, "CUPTI_ACTIVITY_KIND_RUNTIME");
  EXPECT_THAT(t.statistics, IsEmpty());
  ASSERT_EQ(Ops(t).size(), 1u);
  EXPECT_EQ(Ops(t).start_ns[0], 120);
  EXPECT_EQ(Ops(t).end_ns[0], 150);
  EXPECT_EQ(Ops(t).row[0], 1u);
  EXPECT_EQ(t.names.Name(Ops(t).name[0]), "void k<float>(int)") << "the demangled name";
  EXPECT_EQ(Ops(t).call[0], 0u);
  const timeline::Process& process = t.processes[0];
  EXPECT_EQ(process.pid, 702u);
  EXPECT_EQ(process.rank, -1);
  EXPECT_THAT(process.threads, ElementsAre(743));
  EXPECT_EQ(t.names.Name(process.calls.name[0]), "cudaLaunchKernel");
  EXPECT_EQ(process.calls.kind[0], timeline::ApiKind::kLaunch);
}

TEST(NsysSqlite, JoinsByProcessAndCorrelation) {
  const Database db(absl::StrCat(kMeta, kRuntime, kKernelTable, Call(100, 110, 9, GlobalTid(1)),
                                 Call(200, 210, 9, GlobalTid(2)), Kernel(300, 310, 9, GlobalPid(2)),
                                 Kernel(400, 410, 9, GlobalPid(1))));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  ASSERT_EQ(t.processes.size(), 2u);
  for (const timeline::Process& process : t.processes) {
    ASSERT_EQ(process.lanes.at(0).ops.size(), 1u);
    EXPECT_EQ(process.lanes[0].ops.call[0], 0u);
  }
  EXPECT_EQ(t.processes[1].lanes[0].ops.start_ns[0], 300);
}

TEST(NsysSqlite, KeepsEqualPidsOfTwoMachinesApart) {
  const Database db(absl::StrCat(kMeta, kRuntime, kKernelTable, Call(1, 2, 9, GlobalTid(7, 7, 1)),
                                 Call(3, 4, 9, GlobalTid(7, 7, 2)),
                                 Kernel(5, 6, 9, GlobalPid(7, 1)),
                                 Kernel(7, 8, 9, GlobalPid(7, 2))));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_EQ(t.processes.size(), 2u);
}

TEST(NsysSqlite, AttributesGraphKernelsToTheirLaunch) {
  const Database db(absl::StrCat(
      kMeta, kRuntime, kKernelTable, Call(100, 110, 9, GlobalTid(), /*name=*/4),
      Kernel(120, 150, 9, GlobalPid(), 0, "77"), Kernel(160, 170, 9, GlobalPid(), 0, "78")));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_THAT(Ops(t).in_graph, ElementsAre(1, 1));
  EXPECT_THAT(Ops(t).call, ElementsAre(0, 0));
  EXPECT_FALSE(t.graph_level_trace);
}

TEST(NsysSqlite, ReadsGraphsThatWereRecordedAsAWhole) {
  const Database db(absl::StrCat(
      kMeta, kRuntime, Call(100, 110, 9, GlobalTid(), /*name=*/4),
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER,"
      " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (120, 900, 0, 7, 9, ",
      GlobalPid(), ", 1);"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_TRUE(t.graph_level_trace);
  EXPECT_THAT(Ops(t).kind, ElementsAre(GpuOpKind::kGraph));
}

std::string Copy(int start, int kind, int source, int destination) {
  return absl::StrCat("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (", start, ",", start + 5,
                      ",0,7,1,", GlobalPid(), ",4096,", kind, ",", source, ",", destination, ");");
}

TEST(NsysSqlite, TellsCopiesByKindAndHostMemory) {
  const Database db(absl::StrCat(kMeta, kMemcpyTable, Copy(10, 1, 0, 2), Copy(20, 1, 1, 2),
                                 Copy(30, 2, 2, 0), Copy(40, 8, 2, 2), Copy(50, 10, 2, 2),
                                 Copy(60, 11, 4, 4), Copy(70, 9, 0, 0), Copy(80, 77, 0, 0)));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_THAT(Ops(t).kind,
              ElementsAre(GpuOpKind::kCopyHostToDevice, GpuOpKind::kCopyHostToDevice,
                          GpuOpKind::kCopyDeviceToHost, GpuOpKind::kCopyDeviceToDevice,
                          GpuOpKind::kCopyDeviceToDevice, GpuOpKind::kCopyHostToDevice));
  EXPECT_THAT(Ops(t).host_memory,
              ElementsAre(HostMemory::kPageable, HostMemory::kPinned, HostMemory::kPageable,
                          HostMemory::kUnknown, HostMemory::kUnknown, HostMemory::kUnknown));
  EXPECT_EQ(Statistic(t, "copies_host_to_host"), 1u);
  EXPECT_EQ(Statistic(t, "copies_of_unknown_kind"), 1u);
  EXPECT_EQ(Statistic(t, "no_api_calls"), 1u);
}

TEST(NsysSqlite, BelievesTheExportsOwnTableOfCopyKinds) {
  const Database db(absl::StrCat(
      kMeta, kMemcpyTable, Copy(10, 42, 9, 2),
      "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER, name TEXT);"
      "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (42, 'CUDA_MEMCPY_KIND_HTOD');"
      "CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT);"
      "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (9, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE');"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_THAT(Ops(t).kind, ElementsAre(GpuOpKind::kCopyHostToDevice));
  EXPECT_THAT(Ops(t).host_memory, ElementsAre(HostMemory::kPageable));
}

TEST(NsysSqlite, TakesRangesNotMarksAndTheTextOrItsId) {
  const Database db(absl::StrCat(
      kMeta, kKernelTable, Kernel(1, 2, 3),
      "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,"
      " globalTid INTEGER, textId INTEGER);",
      "INSERT INTO NVTX_EVENTS VALUES (10, 20, 59, NULL, ", GlobalTid(), ", 3),",
      "(30, 40, 60, 'own text', ", GlobalTid(), ", NULL), (50, NULL, 34, 'mark', ", GlobalTid(),
      ", NULL), (60, NULL, 59, 'unfinished', ", GlobalTid(), ", NULL), (-5, NULL, 75, 'domain', ",
      GlobalTid(), ", NULL);"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  const timeline::Ranges& ranges = t.processes.at(0).ranges;
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(t.names.Name(ranges.name[0]), "step");
  EXPECT_EQ(t.names.Name(ranges.name[1]), "own text");
  EXPECT_EQ(Statistic(t, "ranges_unfinished"), 1u);
}

TEST(NsysSqlite, CleansNamesThatAreNotUtf8) {
  const Database db(absl::StrCat(kMeta, kKernelTable, Kernel(1, 2, 3),
                                 "UPDATE StringIds SET value = CAST(x'6B00E9' AS TEXT)"
                                 " WHERE id = 2;"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_EQ(t.names.Name(Ops(t).name[0]), "k \xEF\xBF\xBD");
}

TEST(NsysSqlite, CountsWhatIsAbsurdAndDoesNotUseIt) {
  const Database db(
      absl::StrCat(kMeta, kRuntime, kKernelTable, Call(100, 110, 9), Call(110, 100, 10),
                   Kernel(120, 150, 9), Kernel(150, 120, 9), Kernel(-7, 120, 9),
                   "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('x', 5, 0, 7, 1, 1, 2, 5, NULL),"
                   " (1, NULL, 0, 7, 1, 1, 2, 5, NULL), (1, 2, 99999999999, 7, 1, 1, 2, 5, NULL),"
                   " (200, 210, 0, 7, 9, ",
                   GlobalPid(), ", 12345, 5, NULL);"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_EQ(Ops(t).size(), 2u);
  EXPECT_EQ(Statistic(t, "gpu_operations_with_absurd_time"), 2u);
  EXPECT_EQ(Statistic(t, "api_calls_with_absurd_time"), 1u);
  EXPECT_EQ(Statistic(t, "rows_unusable:CUPTI_ACTIVITY_KIND_KERNEL"), 3u);
  EXPECT_EQ(Statistic(t, "strings_missing"), 1u);
}

TEST(NsysSqlite, DoesWithoutColumnsThatOlderExportsLack) {
  const Database db(absl::StrCat(
      kMeta, kRuntime, Call(100, 110, 9),
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,"
      " correlationId INTEGER, shortName INTEGER, own_column TEXT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (120, 150, 0, 9, 5, 'x');"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_EQ(t.names.Name(Ops(t).name[0]), "k");
  EXPECT_EQ(Ops(t).call[0], 0u) << "the process is found by the call";
}

TEST(NsysSqlite, SaysWhichColumnATableLacks) {
  const Database db(absl::StrCat(kMeta,
                                 "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER);"
                                 "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1);"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_FALSE(t.has_gpu_data);
  EXPECT_EQ(Statistic(t, "table_without_column:CUPTI_ACTIVITY_KIND_KERNEL"), 1u);
}

TEST(NsysSqlite, ReadsTablesOfALaterVersionByName) {
  const Database db(absl::StrCat(kMeta, kKernelTable, Kernel(1, 2, 3),
                                 "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO"
                                 " CUPTI_ACTIVITY_KIND_KERNEL_V2;"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_EQ(Ops(t).size(), 1u);
  EXPECT_EQ(t.kernel_table, "CUPTI_ACTIVITY_KIND_KERNEL_V2");
}

TEST(NsysSqlite, WithoutKernelTableIsNotAnIdleGpu) {
  const Database db(absl::StrCat(kMeta, kRuntime, Call(100, 110, 9)));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_FALSE(t.has_gpu_data);
  EXPECT_EQ(Statistic(t, "no_gpu_operations"), 1u);
  EXPECT_THAT(timeline::ComputeShares(t, {}, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not an idle GPU")));
}

TEST(NsysSqlite, TakesGpusByTheirCudaNumber) {
  const Database db(absl::StrCat(
      kMeta, kKernelTable, Kernel(1, 2, 3),
      "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER,"
      " memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, uuid TEXT,"
      " computeMajor INTEGER, computeMinor INTEGER);"
      "INSERT INTO TARGET_INFO_GPU VALUES"
      " (4, 'NVIDIA H200', 150109880320, 4814304000000, 1980000000, 132, 'u4', 9, 0),"
      " (3, 'NVIDIA A100', 85095874560, 2039040000000, 1410000000, 108, 'u3', 8, 0),"
      " (1, 'Intel UHD', 0, 0, 0, 0, 'u1', 0, 0);"
      "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
      "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 1, 9), (4, 0, 9), (3, 0, 10);"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  ASSERT_THAT(t.gpus, SizeIs(2));
  EXPECT_EQ(t.gpus[0].device(), 0);
  EXPECT_EQ(t.gpus[0].name(), "NVIDIA H200");
  EXPECT_EQ(t.gpus[0].memory_bandwidth(), 4814304000000u);
  EXPECT_EQ(t.gpus[0].max_sm_clock_hz(), 1980000000u);
  EXPECT_EQ(t.gpus[0].sm_count(), 132u);
  EXPECT_EQ(t.gpus[1].device(), 1);
  EXPECT_EQ(t.gpus[1].compute_major(), 8u);
  EXPECT_EQ(Statistic(t, "devices_numbered_differently"), 1u);
}

TEST(NsysSqlite, KnowsThatTheProfilerApiStartedTheRecording) {
  const Database db(absl::StrCat(
      kMeta, kKernelTable, Kernel(1, 2, 3),
      "CREATE TABLE DIAGNOSTIC_EVENT (text TEXT);"
      "INSERT INTO DIAGNOSTIC_EVENT VALUES ('Profiling started due to cudaProfilerStart API"
      " invoked in the application.');"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read());
  EXPECT_TRUE(t.recorded_by_profiler_api);
}

// --- what is no such file ----------------------------------------------------

TEST(NsysSqlite, OfAnotherProgramIsSaid) {
  const Database db("CREATE TABLE accounts (name TEXT); CREATE TABLE orders (id INTEGER);");
  EXPECT_THAT(db.Read(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  AllOf(HasSubstr("nsys"), HasSubstr("accounts, orders"))));
  const TempCapture text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  EXPECT_THAT(ReadNsysSqlite(text.path(), {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version https")));
  const TempCapture empty("");
  EXPECT_THAT(ReadNsysSqlite(empty.path(), {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty")));
  EXPECT_THAT(ReadNsysSqlite("/nonexistent/x.sqlite", {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("x.sqlite")));
}

std::string SourceDir() {
  const char* source = std::getenv("SOLWARD_SOURCE_DIR");
  return source != nullptr ? source : "(SOLWARD_SOURCE_DIR is not set)";
}

// The bytes of a capture without its compression.
std::string PlainBytes(const std::string& name) {
  auto file = PlainFile::Make(absl::StrCat(SourceDir(), "/tests/data/h200/", name), {});
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? Slurp(file->path()) : "";
}

TEST(NsysSqlite, ThatIsTruncatedIsSaidAtEveryLength) {
  const std::string whole = PlainBytes("axpy.nsys.sqlite.gz");
  ASSERT_GT(whole.size(), 100000u);
  for (const size_t size : {size_t{20}, size_t{99}, size_t{100}, size_t{5000}, whole.size() / 2,
                            whole.size() - 4096, whole.size() - 1}) {
    const TempCapture file(whole.substr(0, size));
    EXPECT_THAT(ReadNsysSqlite(file.path(), {}),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("truncated")))
        << size;
  }
}

TEST(NsysSqlite, WithACorruptPageIsSaidOrReadNeverCrashes) {
  const std::string whole = PlainBytes("axpy.nsys.sqlite.gz");
  ASSERT_GT(whole.size(), 100000u);
  int said = 0;
  for (size_t page = 0; page < whole.size() / 4096; ++page) {
    std::string bytes = whole;
    for (size_t i = page == 0 ? 100 : 0; i < 4096; ++i) bytes[page * 4096 + i] = '\xA5';
    const TempCapture file(bytes);
    const auto timeline = ReadNsysSqlite(file.path(), {});
    if (timeline.ok()) continue;
    ++said;
    EXPECT_THAT(timeline, AnyOf(StatusIs(absl::StatusCode::kDataLoss, HasSubstr("")),
                                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(""))));
    EXPECT_THAT(std::string(timeline.status().message()), HasSubstr("solward_capture_"));
  }
  EXPECT_GT(said, 3);
}

TEST(NsysSqlite, DoesNotRunWhatAFileBrings) {
  // A view in a table's place would never end.
  const Database view(absl::StrCat(
      kMeta,
      "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS"
      " (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end, 0 AS deviceId"
      " FROM n;"));
  ASSERT_OK_AND_ASSIGN(const Timeline t, view.Read());
  EXPECT_FALSE(t.has_gpu_data);
}

TEST(NsysSqlite, KeepsItsLimits) {
  std::string sql = absl::StrCat(kMeta, kKernelTable);
  for (int i = 0; i < 50; ++i) absl::StrAppend(&sql, Kernel(i, i + 1, i));
  const Database db(sql);
  ReaderLimits limits;
  limits.max_entries = 20;
  EXPECT_THAT(db.Read(limits),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("20 rows")));
  limits = {};
  limits.max_model_bytes = 1000;
  EXPECT_THAT(db.Read(limits),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1000 bytes")));
  limits = {};
  limits.max_string_bytes = 4;
  ASSERT_OK_AND_ASSIGN(const Timeline t, db.Read(limits));
  EXPECT_EQ(t.names.Name(Ops(t).name[0]), "void");
  EXPECT_EQ(Statistic(t, "strings_cut"), 1u);
}

TEST(NsysSqlite, TakesAPathForWhatItIs) {
  // Characters that mean something in a URI.
  const Database db(absl::StrCat(kMeta, kKernelTable, Kernel(1, 2, 3)));
  const std::string odd = db.path() + "?mode=rw#%41";
  std::ofstream(odd, std::ios::binary) << Slurp(db.path());
  ASSERT_OK_AND_ASSIGN(const Timeline t, ReadNsysSqlite(odd, {}));
  EXPECT_EQ(Ops(t).size(), 1u);
  std::remove(odd.c_str());
}

// --- captures of an H200 -----------------------------------------------------

Timeline Captured(const std::string& name) {
  auto timeline = ReadNsysSqlite(absl::StrCat(SourceDir(), "/tests/data/h200/", name), {});
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *std::move(timeline) : Timeline();
}

TEST(NsysCapture, OfManySmallKernelsIsWhole) {
  const Timeline t = Captured("launch.nsys.sqlite.gz");
  EXPECT_THAT(t.statistics, IsEmpty());
  // sqlite3: 81,062 runtime rows, 40,900 kernels, 20 copies, 20 ranges.
  EXPECT_EQ(Ops(t).size(), 40920u);
  EXPECT_EQ(t.processes[0].calls.size(), 81062u);
  EXPECT_EQ(t.processes[0].ranges.size(), 20u);
  EXPECT_TRUE(t.recorded_by_profiler_api);
  ASSERT_THAT(t.gpus, SizeIs(1));
  EXPECT_EQ(t.gpus[0].name(), "NVIDIA H200");
  EXPECT_EQ(t.gpus[0].memory_bandwidth(), 4814304000000u);
  ASSERT_OK_AND_ASSIGN(const auto shares, timeline::ComputeShares(t, {}, {}));
  EXPECT_EQ(shares.at(0).kernels, 40900u);
  EXPECT_EQ(shares.at(0).launch_calls, 40900u);
  EXPECT_EQ(shares.at(0).steps.at(7).kernels, 2045u);
}

TEST(NsysCapture, OfTwoRanksKeepsThemApart) {
  const Timeline t = Captured("comm.nsys.sqlite.gz");
  ASSERT_EQ(t.processes.size(), 2u);
  for (int i : {0, 1}) {
    const timeline::Process& process = t.processes[i];
    EXPECT_EQ(process.rank, i);
    EXPECT_EQ(process.lanes.at(0).device, i);
    EXPECT_EQ(process.lanes[0].ops.size(), 840u + 130u + 70u);
    uint64_t collectives = 0;
    for (GpuOpKind kind : process.lanes[0].ops.kind) collectives += kind == GpuOpKind::kCollective;
    EXPECT_EQ(collectives, 60u);
  }
  EXPECT_EQ(t.gpus.size(), 2u);
}

TEST(NsysCapture, OfAGraphAttributesEveryKernelToItsLaunch) {
  const Timeline t = Captured("graph.nsys.sqlite.gz");
  EXPECT_THAT(Ops(t).in_graph, Each(1));
  ASSERT_OK_AND_ASSIGN(const auto shares, timeline::ComputeShares(t, {}, {}));
  EXPECT_EQ(shares.at(0).graph_launches, 20u);
  EXPECT_EQ(shares.at(0).graph_operations, 40920u);
}

TEST(NsysCapture, CountsThirtySynchronizationsAStep) {
  const Timeline t = Captured("sync.nsys.sqlite.gz");
  ASSERT_OK_AND_ASSIGN(const auto shares, timeline::ComputeShares(t, {}, {}));
  EXPECT_EQ(shares.at(0).synchronizations, 600u);
  // sqlite3: SUM(end - start) of cudaStreamSynchronize.
  EXPECT_EQ(shares.at(0).synchronization_ns, 5150053);
}

TEST(NsysCapture, ShowsUnpinnedCopies) {
  const Timeline t = Captured("input.nsys.sqlite.gz");
  uint64_t pageable = 0;
  for (HostMemory memory : Ops(t).host_memory) pageable += memory == HostMemory::kPageable;
  EXPECT_EQ(pageable, 15u);
}

}  // namespace
}  // namespace solward::readers
