// Fills a Timeline from a tool's rows in any order: checks times, sorts, joins
// every GPU operation to the call that launched it, and counts what it cannot
// use.
//
//   TimelineBuilder builder("nsys", limits.max_model_bytes);
//   builder.AddCall({.process = pid, .thread = tid, .correlation = id, ...});
//   builder.AddOp({.process = pid, .device = 0, .correlation = id, ...});
//   ASSIGN_OR_RETURN(Timeline timeline, std::move(builder).Build());
#ifndef SOLWARD_AGENTS_PROFILING_TIMELINE_TIMELINE_BUILDER_H_
#define SOLWARD_AGENTS_PROFILING_TIMELINE_TIMELINE_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/profiling/timeline/timeline.h"

namespace solward::timeline {

// Times of rows must lie in [0, kMaxTimeNs]; a row may last kMaxDurationNs.
// Sums over a whole capture then stay far inside 64 bits.
inline constexpr int64_t kMaxTimeNs = int64_t{1} << 61;
inline constexpr int64_t kMaxDurationNs = int64_t{1} << 53;  // 104 days

// A process id that the tool did not give: the operation belongs to the process
// whose call has its correlation.
inline constexpr uint32_t kUnknownProcess = kNone;
inline constexpr int64_t kNoCorrelation = -1;

struct OpRow {
  uint32_t process = kUnknownProcess;
  int32_t device = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t bytes = 0;
  int64_t correlation = kNoCorrelation;
  NameId name = 0;
  uint32_t stream = 0;
  uint32_t row = 0;
  GpuOpKind kind = GpuOpKind::kKernel;
  HostMemory host_memory = HostMemory::kUnknown;
  bool in_graph = false;
};

struct CallRow {
  uint32_t process = 0;
  int64_t thread = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t correlation = kNoCorrelation;
  NameId name = 0;
  uint32_t row = 0;
  ApiKind kind = ApiKind::kOther;
};

struct RangeRow {
  uint32_t process = 0;
  int64_t thread = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  NameId name = 0;
  uint32_t row = 0;
};

// Not thread-safe.
class TimelineBuilder {
 public:
  // `max_model_bytes`: what the rows may take in memory.
  TimelineBuilder(std::string tool, uint64_t max_model_bytes);

  // Header, names and tables are filled in place by the reader.
  Timeline& timeline() { return timeline_; }
  NameTable& names() { return timeline_.names; }

  // A row whose times make no sense is counted and left out. RESOURCE_EXHAUSTED
  // when the rows no longer fit.
  absl::Status AddOp(const OpRow& op);
  absl::Status AddCall(const CallRow& call);
  absl::Status AddRange(const RangeRow& range);

  // Adds to the statistic `name`; severity and explanation are those of the
  // first call.
  void Count(absl::string_view name, v1::ParseSeverity severity, absl::string_view explanation,
             uint64_t count = 1);

  size_t ops() const { return op_count_; }

  // Sorts and joins. INVALID_ARGUMENT when the capture holds more processes or
  // devices than any machine.
  absl::StatusOr<Timeline> Build() &&;

 private:
  struct ProcessRows {
    std::vector<OpRow> ops;
    std::vector<CallRow> calls;
    std::vector<RangeRow> ranges;
  };

  absl::Status Charge(uint64_t bytes);
  bool TimesMakeSense(int64_t start_ns, int64_t end_ns, absl::string_view what);
  ProcessRows& Rows(uint32_t process);
  void AssignUnknownProcesses();
  absl::Status BuildProcess(uint32_t pid, ProcessRows* rows);
  absl::Status BuildLanes(const std::vector<uint32_t>& call_of, ProcessRows* rows,
                          Process* process);

  Timeline timeline_;
  std::map<uint32_t, ProcessRows> processes_;
  ProcessRows* last_rows_ = nullptr;
  uint32_t last_process_ = kUnknownProcess;
  std::map<std::string, v1::ParseStatistic, std::less<>> statistics_;
  uint64_t max_model_bytes_;
  uint64_t model_bytes_ = 0;
  size_t op_count_ = 0;
};

}  // namespace solward::timeline

#endif  // SOLWARD_AGENTS_PROFILING_TIMELINE_TIMELINE_BUILDER_H_
