// Counts of a lane: kernels, the calls behind them, graphs, synchronizations,
// copies through pageable memory.
//
// What a provenance with these raw names selects (`device` and `pid` are those
// of its conditions, a window holds the rows that start in it):
//   kernels           rows of the kernel table
//   launch_calls      distinct calls behind those kernels and behind every GPU
//                     operation of a graph
//   graph_launches    distinct calls behind GPU operations of a graph
//   graph_operations  GPU operations (of any table) that a graph launched
//   synchronizations  synchronizing calls on threads that launched a GPU
//                     operation of the device in the window; with `name`, of
//                     that call only. "duration" of the call table with
//                     kind=synchronizing: their CPU time
//   pageable_copies   host-device copies whose host side is pageable. "bytes"
//                     and "duration" with host_memory=pageable: theirs
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/profiling/lane_metrics.h"
#include "agents/profiling/timeline/host_activity.h"
#include "agents/profiling/timeline/window.h"
#include "common/status.h"

namespace solward::profiling {
namespace {

using timeline::GpuOpKind;
using timeline::HostMemory;

// Below both, pageable copies (a scalar read back) are nothing to act on.
constexpr double kWorthBytes = 1 << 20;
constexpr double kWorthPercent = 1;

bool IsKernel(GpuOpKind kind) {
  return kind == GpuOpKind::kKernel || kind == GpuOpKind::kCollective;
}

struct OpCounts {
  uint64_t kernels = 0, graph_operations = 0, launch_calls = 0, graph_launches = 0;
};

OpCounts CountOps(const Lane& lane, const CountWindow& window) {
  const timeline::GpuOps& ops = lane.ops();
  OpCounts counts;
  std::vector<uint8_t> launch_seen(lane.process().calls.size()), graph_seen(launch_seen.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!window.Contains(ops.start_ns[i])) continue;
    const bool kernel = IsKernel(ops.kind[i]), in_graph = ops.in_graph[i] != 0;
    counts.kernels += kernel ? 1 : 0;
    counts.graph_operations += in_graph ? 1 : 0;
    const uint32_t call = ops.call[i];
    if (call == timeline::kNone) continue;
    if ((kernel || in_graph) && !std::exchange(launch_seen[call], 1)) ++counts.launch_calls;
    if (in_graph && !std::exchange(graph_seen[call], 1)) ++counts.graph_launches;
  }
  return counts;
}

absl::Status AddOpCounts(Lane& lane, const CountWindow& window) {
  const OpCounts counts = CountOps(lane, window);
  const std::string& kernels = lane.timeline().kernel_table;
  const std::string& calls = lane.timeline().call_table;
  const auto add = [&](absl::string_view id, absl::string_view table, absl::string_view raw_name,
                       uint64_t count) {
    // A capture without the table has no such rows to count.
    if (table.empty()) return absl::StatusOr<const Metric*>(nullptr);
    return lane.AddRows(id, static_cast<double>(count), window, "",
                        lane.RowsOf(table, raw_name, window, Lane::CountOf(window), count));
  };
  RETURN_IF_ERROR(add("kernel_count", kernels, "kernels", counts.kernels).status());
  RETURN_IF_ERROR(add("launch_call_count", calls, "launch_calls", counts.launch_calls).status());
  if (window.per_step()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Metric* launches,
                   add("graph_launch_count", calls, "graph_launches", counts.graph_launches));
  ASSIGN_OR_RETURN(const Metric* operations, add("graph_operation_count", kernels,
                                                 "graph_operations", counts.graph_operations));
  if (counts.graph_operations == 0) return absl::OkStatus();
  v1::GraphLaunchSummary* summary = lane.builder().result().add_graph_launches();
  summary->set_device(lane.device());
  summary->set_rank(lane.rank());
  summary->set_launches(counts.graph_launches);
  summary->set_operations(counts.graph_operations);
  for (const Metric* metric : {launches, operations}) {
    if (metric != nullptr) summary->add_metric_keys(metric->key());
  }
  return absl::OkStatus();
}

struct Calls {
  uint64_t count = 0;
  int64_t total_ns = 0;
};

// Synchronizing calls by name, longest total first; the sum under no name.
std::vector<std::pair<std::string, Calls>> Synchronizations(const Lane& lane,
                                                            const CountWindow& window) {
  const timeline::ApiCalls& calls = lane.process().calls;
  const std::vector<bool> launching =
      timeline::ThreadsBehind(lane.process(), lane.ops(), window.start_ns, window.end_ns);
  std::map<timeline::NameId, Calls> by_name;
  Calls all;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!timeline::IsSynchronizing(calls.kind[i]) || !window.Contains(calls.start_ns[i]) ||
        !launching[calls.thread[i]]) {
      continue;
    }
    for (Calls* sum : {&all, &by_name[calls.name[i]]}) {
      ++sum->count;
      sum->total_ns += calls.end_ns[i] - calls.start_ns[i];
    }
  }
  std::vector<std::pair<std::string, Calls>> sorted;
  sorted.reserve(by_name.size() + 1);
  for (const auto& [name, sum] : by_name) {
    sorted.emplace_back(std::string(lane.timeline().names.Name(name)), sum);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.total_ns > b.second.total_ns;
  });
  sorted.insert(sorted.begin(), {"", all});
  return sorted;
}

void AddSynchronizationFinding(const Lane& lane, const std::string& api, const Metric* count,
                               const Metric* time) {
  v1::Finding* finding = lane.builder().result().add_findings();
  finding->set_id("synchronizations_per_step");
  finding->set_severity(v1::SEVERITY_WARNING);
  (*finding->mutable_metric_keys())["count"] = count->key();
  (*finding->mutable_metric_keys())["time"] = time->key();
  (*finding->mutable_words())["api"] = api;
  finding->mutable_location()->set_api(api);
  finding->set_detail(
      absl::StrCat("Every step waits for the GPU in ", api,
                   ", so the host cannot run ahead and the device's queue runs empty."));
}

absl::Status AddSynchronizations(Lane& lane, const CountWindow& window) {
  const std::string& table = lane.timeline().call_table;
  if (table.empty()) return absl::OkStatus();
  for (const auto& [api, calls] : Synchronizations(lane, window)) {
    v1::Measured counted =
        lane.RowsOf(table, "synchronizations", window, Lane::CountOf(window), calls.count);
    v1::Measured timed = lane.RowsOf(table, "duration", window, Lane::SumOf(window), calls.count);
    AddCondition("kind", "synchronizing", timed.mutable_rows());
    for (v1::Measured* measured : {&counted, &timed}) {
      if (!api.empty()) AddCondition("name", api, measured->mutable_rows());
    }
    ASSIGN_OR_RETURN(const Metric* count,
                     lane.AddRows("synchronization_count", static_cast<double>(calls.count), window,
                                  api, std::move(counted)));
    ASSIGN_OR_RETURN(const Metric* time,
                     lane.AddRows("synchronization_time", static_cast<double>(calls.total_ns),
                                  window, api, std::move(timed)));
    if (api.empty()) continue;
    if (window.per_step() == (lane.steps() != nullptr)) {
      v1::SynchronizationSummary* summary = lane.builder().result().add_synchronizations();
      summary->set_api(api);
      summary->set_device(lane.device());
      summary->set_rank(lane.rank());
      summary->set_calls(calls.count);
      summary->set_total_time_ns(calls.total_ns);
      for (const Metric* metric : {count, time}) summary->add_metric_keys(metric->key());
    }
    // One wait more than the steps is a loop that waits once, at its end.
    if (window.per_step() && calls.count >= window.steps + 1) {
      AddSynchronizationFinding(lane, api, count, time);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddLaneCounts(Lane& lane) {
  for (const CountWindow& window : lane.windows()) {
    RETURN_IF_ERROR(AddOpCounts(lane, window));
    RETURN_IF_ERROR(AddSynchronizations(lane, window));
  }
  return absl::OkStatus();
}

absl::Status AddLaneCopies(Lane& lane) {
  const std::string& table = lane.timeline().copy_table;
  if (table.empty()) return absl::OkStatus();
  const timeline::GpuOps& ops = lane.ops();
  uint64_t count = 0, bytes = 0;
  int64_t total_ns = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.host_memory[i] != HostMemory::kPageable || !lane.run().Contains(ops.start_ns[i])) {
      continue;
    }
    ++count;
    bytes += ops.bytes[i];
    total_ns += ops.end_ns[i] - ops.start_ns[i];
  }
  const CountWindow& window = lane.run();
  ASSIGN_OR_RETURN(
      const Metric* copies,
      lane.AddRows("pageable_copy_count", static_cast<double>(count), window, "",
                   lane.RowsOf(table, "pageable_copies", window, v1::AGGREGATION_COUNT, count)));
  v1::Measured summed = lane.RowsOf(table, "bytes", window, v1::AGGREGATION_SUM, count);
  AddCondition("host_memory", "pageable", summed.mutable_rows());
  v1::Measured timed = summed;
  timed.set_raw_name("duration");
  ASSIGN_OR_RETURN(const Metric* size,
                   lane.AddRows("pageable_copy_bytes", static_cast<double>(bytes), window, "",
                                std::move(summed)));
  ASSIGN_OR_RETURN(const Metric* time,
                   lane.AddRows("pageable_copy_time", static_cast<double>(total_ns), window, "",
                                std::move(timed)));
  const auto length = static_cast<double>(std::max<int64_t>(1, lane.shares().whole.window));
  const bool costs_time = 100 * time->value() / length >= kWorthPercent;
  if (!costs_time && size->value() < kWorthBytes) return absl::OkStatus();
  v1::Finding* finding = lane.builder().result().add_findings();
  finding->set_id("unpinned_copies");
  finding->set_severity(costs_time ? v1::SEVERITY_WARNING : v1::SEVERITY_INFO);
  (*finding->mutable_metric_keys())["count"] = copies->key();
  (*finding->mutable_metric_keys())["bytes"] = size->key();
  (*finding->mutable_metric_keys())["time"] = time->key();
  finding->set_detail(
      "Host-device copies go through pageable memory: slower than from pinned memory, and the host "
      "waits for them.");
  return absl::OkStatus();
}

}  // namespace solward::profiling
