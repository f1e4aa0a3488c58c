#include "agents/profiling/timeline/timeline_builder.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::timeline {
namespace {

constexpr size_t kMaxProcesses = 1 << 16;
constexpr size_t kMaxDevices = 1 << 8;

// Rows twice: as they came and in columns, which for a moment exist together.
constexpr uint64_t kOpBytes = sizeof(OpRow) + 48;
constexpr uint64_t kCallBytes = sizeof(CallRow) + 48;
constexpr uint64_t kRangeBytes = sizeof(RangeRow) + 32;

// How well a call explains a GPU operation that carries its correlation.
int LaunchRank(ApiKind kind) {
  switch (kind) {
    case ApiKind::kLaunch:
    case ApiKind::kGraphLaunch:
      return 2;
    case ApiKind::kCopy:
    case ApiKind::kBlockingCopy:
      return 1;
    default:
      return 0;
  }
}

// Correlation id -> index of a call. Ids of one capture are nearly consecutive,
// so that a plain array usually does; else a sorted one.
class CorrelationIndex {
 public:
  explicit CorrelationIndex(const std::vector<CallRow>& calls) {
    int64_t low = kMaxTimeNs, high = -1;
    for (const CallRow& call : calls) {
      if (call.correlation < 0) continue;
      low = std::min(low, call.correlation);
      high = std::max(high, call.correlation);
    }
    if (high < low) return;
    low_ = low;
    const auto span = static_cast<uint64_t>(high - low);
    if (span < 8 * static_cast<uint64_t>(calls.size()) + 1024) {
      dense_.assign(span + 1, kNone);
      for (uint32_t i = 0; i < calls.size(); ++i) {
        if (calls[i].correlation >= 0) Keep(calls, i, &dense_[calls[i].correlation - low_]);
      }
      return;
    }
    for (uint32_t i = 0; i < calls.size(); ++i) {
      if (calls[i].correlation < 0) continue;
      Keep(calls, i, &sparse_.try_emplace(calls[i].correlation, kNone).first->second);
    }
  }

  uint32_t Find(int64_t correlation) const {
    if (correlation < low_) return kNone;
    if (!dense_.empty()) {
      const auto at = static_cast<uint64_t>(correlation - low_);
      return at < dense_.size() ? dense_[at] : kNone;
    }
    auto it = sparse_.find(correlation);
    return it == sparse_.end() ? kNone : it->second;
  }

 private:
  static void Keep(const std::vector<CallRow>& calls, uint32_t i, uint32_t* slot) {
    if (*slot == kNone || LaunchRank(calls[i].kind) > LaunchRank(calls[*slot].kind)) *slot = i;
  }

  int64_t low_ = 0;
  std::vector<uint32_t> dense_;
  std::unordered_map<int64_t, uint32_t> sparse_;
};

// Sorted thread ids of a process and the index of each.
class ThreadIndex {
 public:
  void Add(int64_t thread) {
    if (thread != last_ || index_.empty()) index_.try_emplace(thread, 0);
    last_ = thread;
  }
  std::vector<int64_t> Number() {
    std::vector<int64_t> ids;
    ids.reserve(index_.size());
    for (const auto& [id, unused] : index_) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    for (uint32_t i = 0; i < ids.size(); ++i) index_[ids[i]] = i;
    return ids;
  }
  uint32_t Of(int64_t thread) const { return index_.at(thread); }

 private:
  std::unordered_map<int64_t, uint32_t> index_;
  int64_t last_ = 0;
};

template <typename Row>
void SortByStart(std::vector<Row>* rows) {
  // Of rows that start together the enclosing one comes first.
  auto before = [](const Row& a, const Row& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  };
  if (!std::is_sorted(rows->begin(), rows->end(), before)) {
    std::stable_sort(rows->begin(), rows->end(), before);
  }
}

// Sorts the rows by (thread, start) and returns where each thread begins.
std::vector<uint32_t> SortByThread(const ThreadIndex& threads, size_t thread_count,
                                   std::vector<CallRow>* rows) {
  SortByStart(rows);
  std::vector<uint32_t> begin(thread_count + 1, 0);
  if (thread_count <= 1) {
    if (thread_count == 1) begin[1] = static_cast<uint32_t>(rows->size());
    return begin;
  }
  std::vector<uint32_t> thread_of(rows->size());
  for (size_t i = 0; i < rows->size(); ++i) {
    thread_of[i] = threads.Of((*rows)[i].thread);
    ++begin[thread_of[i] + 1];
  }
  for (size_t t = 0; t < thread_count; ++t) begin[t + 1] += begin[t];
  std::vector<CallRow> sorted(rows->size());
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < rows->size(); ++i) sorted[next[thread_of[i]]++] = (*rows)[i];
  rows->swap(sorted);
  return begin;
}

ApiCalls ToColumns(const std::vector<CallRow>& rows, std::vector<uint32_t> thread_begin) {
  ApiCalls calls;
  const size_t n = rows.size();
  calls.start_ns.resize(n);
  calls.end_ns.resize(n);
  calls.name.resize(n);
  calls.thread.resize(n);
  calls.row.resize(n);
  calls.kind.resize(n);
  for (uint32_t t = 0; t + 1 < thread_begin.size(); ++t) {
    for (uint32_t i = thread_begin[t]; i < thread_begin[t + 1]; ++i) calls.thread[i] = t;
  }
  for (size_t i = 0; i < n; ++i) {
    calls.start_ns[i] = rows[i].start_ns;
    calls.end_ns[i] = rows[i].end_ns;
    calls.name[i] = rows[i].name;
    calls.row[i] = rows[i].row;
    calls.kind[i] = rows[i].kind;
  }
  calls.thread_begin = std::move(thread_begin);
  return calls;
}

Ranges ToColumns(const std::vector<RangeRow>& rows, const ThreadIndex& threads) {
  Ranges ranges;
  for (const RangeRow& row : rows) {
    ranges.start_ns.push_back(row.start_ns);
    ranges.end_ns.push_back(row.end_ns);
    ranges.name.push_back(row.name);
    ranges.thread.push_back(threads.Of(row.thread));
    ranges.row.push_back(row.row);
  }
  return ranges;
}

void Append(const OpRow& row, uint32_t call, bool in_graph, GpuOps* ops) {
  ops->start_ns.push_back(row.start_ns);
  ops->end_ns.push_back(row.end_ns);
  ops->bytes.push_back(row.bytes);
  ops->name.push_back(row.name);
  ops->call.push_back(call);
  ops->stream.push_back(row.stream);
  ops->row.push_back(row.row);
  ops->kind.push_back(row.kind);
  ops->host_memory.push_back(row.host_memory);
  ops->in_graph.push_back(in_graph ? 1 : 0);
}

void Reserve(size_t n, GpuOps* ops) {
  ops->start_ns.reserve(n);
  ops->end_ns.reserve(n);
  ops->bytes.reserve(n);
  ops->name.reserve(n);
  ops->call.reserve(n);
  ops->stream.reserve(n);
  ops->row.reserve(n);
  ops->kind.reserve(n);
  ops->host_memory.reserve(n);
  ops->in_graph.reserve(n);
}

}  // namespace

TimelineBuilder::TimelineBuilder(std::string tool, uint64_t max_model_bytes)
    : max_model_bytes_(max_model_bytes) {
  timeline_.tool = std::move(tool);
}

absl::Status TimelineBuilder::Charge(uint64_t bytes) {
  model_bytes_ += bytes;
  if (model_bytes_ <= max_model_bytes_) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE",
                   absl::StrCat("timeline: expected rows that fit in ", max_model_bytes_,
                                " bytes of memory, found more; record a shorter part of the run, "
                                "or raise the reader's limit"));
}

bool TimelineBuilder::TimesMakeSense(int64_t start_ns, int64_t end_ns, absl::string_view what) {
  if (start_ns >= 0 && start_ns <= kMaxTimeNs && end_ns >= start_ns &&
      end_ns - start_ns <= kMaxDurationNs) {
    return true;
  }
  Count(absl::StrCat(what, "_with_absurd_time"), v1::PARSE_SEVERITY_DATA_LOSS,
        absl::StrCat("rows of ", what,
                     " that end before they start, start before the clock or last for months"));
  return false;
}

TimelineBuilder::ProcessRows& TimelineBuilder::Rows(uint32_t process) {
  if (last_rows_ == nullptr || process != last_process_) {
    last_process_ = process;
    last_rows_ = &processes_[process];
  }
  return *last_rows_;
}

absl::Status TimelineBuilder::AddOp(const OpRow& op) {
  if (!TimesMakeSense(op.start_ns, op.end_ns, "gpu_operations")) return absl::OkStatus();
  if (op.device < 0) {
    Count("gpu_operations_without_device", v1::PARSE_SEVERITY_DATA_LOSS,
          "GPU operations that name no device");
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Charge(kOpBytes));
  Rows(op.process).ops.push_back(op);
  ++op_count_;
  return absl::OkStatus();
}

absl::Status TimelineBuilder::AddCall(const CallRow& call) {
  if (!TimesMakeSense(call.start_ns, call.end_ns, "api_calls")) return absl::OkStatus();
  RETURN_IF_ERROR(Charge(kCallBytes));
  Rows(call.process).calls.push_back(call);
  return absl::OkStatus();
}

absl::Status TimelineBuilder::AddRange(const RangeRow& range) {
  if (!TimesMakeSense(range.start_ns, range.end_ns, "ranges")) return absl::OkStatus();
  RETURN_IF_ERROR(Charge(kRangeBytes));
  Rows(range.process).ranges.push_back(range);
  return absl::OkStatus();
}

void TimelineBuilder::Count(absl::string_view name, v1::ParseSeverity severity,
                            absl::string_view explanation, uint64_t count) {
  if (count == 0) return;
  auto it = statistics_.find(name);
  if (it == statistics_.end()) {
    it = statistics_.try_emplace(std::string(name)).first;
    it->second.set_name(std::string(name));
    it->second.set_severity(severity);
    it->second.set_explanation(std::string(explanation));
  }
  it->second.set_count(it->second.count() + count);
}

// Operations of an unknown process go to the only process with calls, else to
// the one whose call has the correlation. Correlations repeat between
// processes: an operation that several could have launched goes to the first.
void TimelineBuilder::AssignUnknownProcesses() {
  auto unknown = processes_.extract(kUnknownProcess);
  last_rows_ = nullptr;
  if (unknown.empty() || unknown.mapped().ops.empty()) return;
  const std::vector<OpRow>& ops = unknown.mapped().ops;
  std::vector<ProcessRows*> owners;
  for (auto& [pid, rows] : processes_) {
    if (!rows.calls.empty()) owners.push_back(&rows);
  }
  if (owners.empty())
    owners.push_back(&(processes_.empty() ? processes_[0] : processes_.begin()->second));
  if (owners.size() == 1) {
    owners[0]->ops.insert(owners[0]->ops.end(), ops.begin(), ops.end());
    return;
  }
  constexpr size_t kSeveral = std::numeric_limits<size_t>::max();
  struct Owner {
    size_t first;
    size_t only;
  };
  std::unordered_map<int64_t, Owner> owner_of;
  for (size_t i = 0; i < owners.size(); ++i) {
    for (const CallRow& call : owners[i]->calls) {
      auto [it, is_new] = owner_of.try_emplace(call.correlation, Owner{i, i});
      if (it->second.first != i) it->second.only = kSeveral;
    }
  }
  uint64_t ambiguous = 0;
  for (const OpRow& op : ops) {
    auto it = owner_of.find(op.correlation);
    if (it == owner_of.end() || it->second.only == kSeveral) ++ambiguous;
    owners[it == owner_of.end() ? 0 : it->second.first]->ops.push_back(op);
  }
  Count("gpu_operations_of_ambiguous_process", v1::PARSE_SEVERITY_DATA_LOSS,
        "GPU operations that several processes of the capture, or none, can have launched",
        ambiguous);
}

// Sorts and joins the operations of one process, whose calls are in place.
absl::Status TimelineBuilder::BuildLanes(const std::vector<uint32_t>& call_of, ProcessRows* rows,
                                         Process* process) {
  std::map<int32_t, size_t> per_device;
  for (const OpRow& op : rows->ops) ++per_device[op.device];
  if (per_device.size() > kMaxDevices) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, "CAPTURE_CORRUPT",
        absl::StrCat("timeline: expected at most ", kMaxDevices, " devices in process ",
                     process->pid, ", found ", per_device.size()));
  }
  std::map<int32_t, size_t> lane_of;
  for (const auto& [device, count] : per_device) {
    lane_of[device] = process->lanes.size();
    process->lanes.push_back({.device = device, .ops = {}});
    Reserve(count, &process->lanes.back().ops);
  }
  uint64_t without_call = 0;
  for (size_t i = 0; i < rows->ops.size(); ++i) {
    const OpRow& op = rows->ops[i];
    const uint32_t call = call_of[i];
    if (call == kNone) ++without_call;
    // Traces without graph ids show graphs by the launching call.
    const bool in_graph =
        op.in_graph || (call != kNone && process->calls.kind[call] == ApiKind::kGraphLaunch);
    Append(op, call, in_graph, &process->lanes[lane_of[op.device]].ops);
    if (op.kind == GpuOpKind::kGraph) timeline_.graph_level_trace = true;
  }
  Count("gpu_operations_without_call", v1::PARSE_SEVERITY_INFO,
        "GPU operations whose launching call is not in the capture; a gap that one of them ends "
        "has no known cause",
        without_call);
  return absl::OkStatus();
}

absl::Status TimelineBuilder::BuildProcess(uint32_t pid, ProcessRows* rows) {
  Process process;
  process.pid = pid;
  ThreadIndex threads;
  for (const CallRow& call : rows->calls) threads.Add(call.thread);
  for (const RangeRow& range : rows->ranges) threads.Add(range.thread);
  process.threads = threads.Number();
  std::vector<uint32_t> thread_begin = SortByThread(threads, process.threads.size(), &rows->calls);
  SortByStart(&rows->ops);
  std::vector<uint32_t> call_of(rows->ops.size());
  {
    const CorrelationIndex correlations(rows->calls);
    for (size_t i = 0; i < call_of.size(); ++i) {
      call_of[i] = correlations.Find(rows->ops[i].correlation);
    }
  }
  process.calls = ToColumns(rows->calls, std::move(thread_begin));
  rows->calls = {};
  SortByStart(&rows->ranges);
  process.ranges = ToColumns(rows->ranges, threads);
  RETURN_IF_ERROR(BuildLanes(call_of, rows, &process));
  rows->ops = {};
  timeline_.processes.push_back(std::move(process));
  return absl::OkStatus();
}

absl::StatusOr<Timeline> TimelineBuilder::Build() && {
  AssignUnknownProcesses();
  if (processes_.size() > kMaxProcesses) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_CORRUPT",
                     absl::StrCat("timeline: expected at most ", kMaxProcesses,
                                  " processes, found ", processes_.size()));
  }
  for (auto& [pid, rows] : processes_) RETURN_IF_ERROR(BuildProcess(pid, &rows));
  timeline_.has_gpu_data = op_count_ > 0;
  for (auto& [name, statistic] : statistics_) {
    timeline_.statistics.push_back(std::move(statistic));
  }
  return std::move(timeline_);
}

}  // namespace solward::timeline
