// Rows and time-model parts of a timeline, as a provenance cites them; what its
// raw names select is written in lane_counts.cc.
#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agents/profiling/lane_metrics.h"
#include "agents/profiling/recompute.h"
#include "agents/profiling/result_builder.h"
#include "common/status.h"

namespace solward::profiling {
namespace {

using timeline::GpuOpKind;
using timeline::GpuOps;
using timeline::LaneShares;
using timeline::Process;
using timeline::Timeline;

absl::Status NotFound(absl::string_view what) {
  return MakeError(absl::StatusCode::kNotFound, "ROWS_NOT_FOUND", what);
}

absl::Status NoRule(const v1::Measured& measured) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, "PROVENANCE_INVALID",
      absl::StrCat("no rule for ", measured.raw_name(), " of ", measured.rows().table()));
}

std::string Condition(const v1::Measured& measured, absl::string_view column) {
  for (const v1::RowCondition& condition : measured.rows().conditions()) {
    if (condition.column() == column) return condition.value();
  }
  return "";
}

bool InWindow(const v1::Measured& measured, int64_t start_ns) {
  const v1::RowSelection& rows = measured.rows();
  if (rows.window_start_ns() == 0 && rows.window_end_ns() == 0) return true;
  return start_ns >= rows.window_start_ns() && start_ns <= rows.window_end_ns();
}

bool IsKernel(GpuOpKind kind) {
  return kind == GpuOpKind::kKernel || kind == GpuOpKind::kCollective;
}

// What one cited number is made of, row by row.
struct Rows {
  std::vector<double> durations, bytes;
  std::set<uint32_t> calls;  // distinct launching calls

  void AddOp(const GpuOps& ops, size_t i) {
    durations.push_back(static_cast<double>(ops.end_ns[i] - ops.start_ns[i]));
    bytes.push_back(static_cast<double>(ops.bytes[i]));
    if (ops.call[i] != timeline::kNone) calls.insert(ops.call[i]);
  }
};

template <typename Selects>
Rows SelectOps(const GpuOps& ops, const v1::Measured& measured, const Selects& selects) {
  Rows rows;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (InWindow(measured, ops.start_ns[i]) && selects(i)) rows.AddOp(ops, i);
  }
  return rows;
}

Rows KernelRows(const Timeline& timeline, const GpuOps& ops, const v1::Measured& measured) {
  const std::string name = Condition(measured, "name"), category = Condition(measured, "category");
  return SelectOps(ops, measured, [&](size_t i) {
    return IsKernel(ops.kind[i]) && (name.empty() || timeline.names.Name(ops.name[i]) == name) &&
           (category.empty() || ops.kind[i] == GpuOpKind::kKernel);
  });
}

Rows SynchronizingRows(const Timeline& timeline, const Process& process, const GpuOps& ops,
                       const v1::Measured& measured) {
  std::set<uint32_t> threads;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.call[i] != timeline::kNone && InWindow(measured, ops.start_ns[i])) {
      threads.insert(process.calls.thread[ops.call[i]]);
    }
  }
  const std::string name = Condition(measured, "name");
  const timeline::ApiCalls& calls = process.calls;
  Rows rows;
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool waits = calls.kind[i] == timeline::ApiKind::kSynchronize ||
                       calls.kind[i] == timeline::ApiKind::kBlockingCopy;
    if (!waits || !InWindow(measured, calls.start_ns[i]) || threads.count(calls.thread[i]) == 0 ||
        (!name.empty() && timeline.names.Name(calls.name[i]) != name)) {
      continue;
    }
    rows.durations.push_back(static_cast<double>(calls.end_ns[i] - calls.start_ns[i]));
  }
  return rows;
}

// Count, or the durations or bytes that the raw name speaks of.
absl::StatusOr<std::vector<double>> CitedValues(const Timeline& timeline, const Process& process,
                                                const GpuOps& ops, const v1::Measured& measured) {
  const std::string& raw = measured.raw_name();
  const auto pageable = [&](size_t i) {
    return ops.host_memory[i] == timeline::HostMemory::kPageable;
  };
  const auto in_graph = [&](size_t i) { return ops.in_graph[i] != 0; };
  if (raw == "kernels") return KernelRows(timeline, ops, measured).durations;
  if (raw == "graph_operations") return SelectOps(ops, measured, in_graph).durations;
  if (raw == "graph_launches") {
    return std::vector<double>(SelectOps(ops, measured, in_graph).calls.size(), 1);
  }
  if (raw == "launch_calls") {
    const auto launched = [&](size_t i) { return IsKernel(ops.kind[i]) || in_graph(i); };
    return std::vector<double>(SelectOps(ops, measured, launched).calls.size(), 1);
  }
  if (raw == "pageable_copies") return SelectOps(ops, measured, pageable).durations;
  if (raw == "synchronizations") {
    return SynchronizingRows(timeline, process, ops, measured).durations;
  }
  const bool of_copies = Condition(measured, "host_memory") == "pageable";
  if (raw == "bytes" && of_copies) return SelectOps(ops, measured, pageable).bytes;
  if (raw != "duration") return NoRule(measured);
  if (of_copies) return SelectOps(ops, measured, pageable).durations;
  if (Condition(measured, "kind") == "synchronizing") {
    return SynchronizingRows(timeline, process, ops, measured).durations;
  }
  if (measured.rows().table() != timeline.kernel_table) return NoRule(measured);
  return KernelRows(timeline, ops, measured).durations;
}

absl::StatusOr<double> AggregateRows(const std::vector<double>& values,
                                     const v1::Measured& measured) {
  const auto per_step = [&](double total) -> absl::StatusOr<double> {
    if (measured.samples() == 0) return NotFound("a value per step that cites no steps");
    return total / static_cast<double>(measured.samples());
  };
  double sum = 0;
  for (const double value : values) sum += value;
  switch (measured.aggregation()) {
    case v1::AGGREGATION_COUNT_PER_STEP:
      return per_step(static_cast<double>(values.size()));
    case v1::AGGREGATION_SUM_PER_STEP:
      return per_step(sum);
    case v1::AGGREGATION_SUM:
      return sum;  // of no row: 0
    default:
      return Aggregate(values, measured.aggregation());
  }
}

absl::StatusOr<double> DeviceProperty(const Timeline& timeline, const v1::Measured& measured) {
  const std::string uuid = Condition(measured, "uuid");
  for (const v1::Gpu& gpu : timeline.gpus) {
    if (!uuid.empty() && gpu.uuid() == uuid && measured.raw_name() == "memoryBandwidth") {
      return static_cast<double>(gpu.memory_bandwidth());
    }
  }
  return NotFound(absl::StrCat("the capture names no device ", uuid));
}

}  // namespace

absl::StatusOr<double> TimelineRecomputer::Recompute(const v1::Measured& measured) {
  if (measured.rows().table() == "TARGET_INFO_GPU") return DeviceProperty(timeline_, measured);
  uint32_t pid = 0;
  int32_t device = 0;
  if (!absl::SimpleAtoi(Condition(measured, "pid"), &pid) ||
      !absl::SimpleAtoi(Condition(measured, "device"), &device)) {
    return NotFound("the provenance names no process and device");
  }
  for (const Process& process : timeline_.processes) {
    if (process.pid != pid) continue;
    for (const timeline::GpuLane& lane : process.lanes) {
      if (lane.device != device) continue;
      if (measured.rows().table() == "timeline") return FromModel(measured, process, device);
      ASSIGN_OR_RETURN(const std::vector<double> values,
                       CitedValues(timeline_, process, lane.ops, measured));
      return AggregateRows(values, measured);
    }
  }
  return NotFound(absl::StrCat("the capture has no process ", pid, " on device ", device));
}

absl::StatusOr<const LaneShares*> TimelineRecomputer::SharesOf(const v1::Measured& measured,
                                                               const Process& process,
                                                               int32_t device) {
  ASSIGN_OR_RETURN(const v1::Region region, RegionOfConditions(measured.rows()));
  auto found = shares_.find(region.SerializeAsString());
  if (found == shares_.end()) {
    found = shares_
                .emplace(region.SerializeAsString(),
                         timeline::ComputeShares(timeline_, region, v1::Constraints()))
                .first;
  }
  if (!found->second.ok()) return found->second.status();
  for (const LaneShares& shares : *found->second) {
    const Process& candidate = timeline_.processes[shares.process];
    if (&candidate == &process && candidate.lanes[shares.lane].device == device) return &shares;
  }
  return NotFound("the region holds no GPU activity of this process and device");
}

absl::StatusOr<double> TimelineRecomputer::FromModel(const v1::Measured& measured,
                                                     const Process& process, int32_t device) {
  ASSIGN_OR_RETURN(const LaneShares* shares, SharesOf(measured, process, device));
  const std::string& raw = measured.raw_name();
  const auto steps = static_cast<double>(shares->steps.size());
  if (raw == "steps" && measured.aggregation() == v1::AGGREGATION_COUNT) return steps;
  const bool per_step = measured.aggregation() == v1::AGGREGATION_TIME_MODEL_PER_STEP;
  if (!per_step && measured.aggregation() != v1::AGGREGATION_TIME_MODEL) return NoRule(measured);
  if (raw == "lead_in" && !per_step) return static_cast<double>(shares->lead_in_ns);
  if (raw == "tail" && !per_step) return static_cast<double>(shares->tail_ns);
  for (const NamedPart& part : NamedParts()) {
    if (part.raw_name != raw) continue;
    if (!per_step) return static_cast<double>(part.of(shares->whole));
    if (shares->steps.empty()) return NotFound("the region has no steps");
    return static_cast<double>(part.of(shares->in_steps)) / steps;
  }
  return NoRule(measured);
}

}  // namespace solward::profiling
