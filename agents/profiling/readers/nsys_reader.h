// The pieces of the nsys reader share one object; nsys_sqlite.cc reads what
// describes the run and its CPU side, nsys_gpu_rows.cc what ran on the GPUs.
#ifndef SOLWARD_AGENTS_PROFILING_READERS_NSYS_READER_H_
#define SOLWARD_AGENTS_PROFILING_READERS_NSYS_READER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/sqlite_capture.h"
#include "agents/profiling/timeline/timeline_builder.h"
#include "common/status.h"

namespace solward::readers {

// Reads one export once. Not thread-safe.
class NsysReader {
 public:
  NsysReader(SqliteCapture db, std::string label, const ReaderLimits& limits)
      : db_(std::move(db)),
        label_(std::move(label)),
        limits_(limits),
        builder_("nsys", limits.max_model_bytes) {}

  absl::StatusOr<timeline::Timeline> Read() {
    RETURN_IF_ERROR(CheckIsNsys());
    RETURN_IF_ERROR(ReadMetaData());
    RETURN_IF_ERROR(ReadCalls());
    RETURN_IF_ERROR(ReadKernels());
    RETURN_IF_ERROR(ReadCopies());
    RETURN_IF_ERROR(ReadMemsets());
    RETURN_IF_ERROR(ReadGraphs());
    RETURN_IF_ERROR(ReadRanges());
    RETURN_IF_ERROR(ReadGpus());
    RETURN_IF_ERROR(ReadHowStarted());
    NoteMissing();
    ASSIGN_OR_RETURN(timeline::Timeline result, std::move(builder_).Build());
    AssignRanks(&result);
    return result;
  }

 private:
  absl::Status CheckIsNsys();
  absl::Status ReadMetaData();
  absl::Status ReadCalls();
  absl::Status ReadKernels();
  absl::Status ReadCopies();
  absl::Status ReadMemsets();
  absl::Status ReadGraphs();
  absl::Status ReadRanges();
  absl::Status ReadGpus();
  absl::Status ReadHowStarted();
  void NoteMissing();
  void AssignRanks(timeline::Timeline* result);

  // `table` or, when there is none, its newest "_V2", "_V3", ... form; empty
  // when neither exists.
  std::string Find(const std::string& table);
  // Whether the table has the columns without which its rows mean nothing.
  absl::StatusOr<bool> Usable(const std::string& table, const std::vector<std::string>& required);
  absl::Status CountEntry();
  absl::StatusOr<timeline::NameId> String(int64_t id);
  absl::StatusOr<std::string> Text(int64_t id);
  // Runs `row` for each row of the table.
  template <typename Row>
  absl::Status ForEach(const std::string& table, const std::vector<std::string>& columns,
                       const Row& row);
  // The part every GPU activity table shares: start, end, deviceId, streamId,
  // correlationId, globalPid, graphNodeId as columns 0 to 6.
  std::optional<timeline::OpRow> CommonOp(const SqliteRows& rows);
  uint32_t ProcessOf(int64_t global_id);
  uint32_t RowId(const SqliteRows& rows);
  void CountUnusable(absl::string_view table);
  absl::StatusOr<std::map<int64_t, std::string>> Enum(const std::string& table);

  SqliteCapture db_;
  const std::string label_;
  const ReaderLimits limits_;
  timeline::TimelineBuilder builder_;
  std::optional<SqliteRows> string_query_;
  std::unordered_map<int64_t, timeline::NameId> strings_;
  std::unordered_map<timeline::NameId, timeline::GpuOpKind> kernel_kinds_;
  std::map<int64_t, uint32_t> process_of_global_;
  std::set<uint32_t> used_processes_;
  int64_t last_global_ = -1;
  uint32_t last_process_ = 0;
  uint64_t entries_ = 0;
  uint64_t calls_ = 0;
  uint64_t graph_launches_ = 0;
  bool graphs_hidden_ = false;
};

template <typename Row>
absl::Status NsysReader::ForEach(const std::string& table, const std::vector<std::string>& columns,
                                 const Row& row) {
  ASSIGN_OR_RETURN(SqliteRows rows, db_.Select(table, columns));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return absl::OkStatus();
    RETURN_IF_ERROR(CountEntry());
    RETURN_IF_ERROR(row(rows));
  }
}

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_NSYS_READER_H_
