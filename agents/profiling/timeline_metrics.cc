#include "agents/profiling/timeline_metrics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/profiling/lane_metrics.h"
#include "agents/profiling/timeline/time_model.h"
#include "common/status.h"

namespace solward::profiling {
namespace {

// More rows would fill a message; the metrics rest on all steps anyway.
constexpr size_t kMaxStepRows = 10'000;

void AddStepRows(const Lane& lane) {
  const auto& steps = lane.shares().steps;
  for (size_t i = 0; i < std::min(steps.size(), kMaxStepRows); ++i) {
    const timeline::TimeParts& parts = steps[i].parts;
    v1::StepRow* row = lane.out().add_steps();
    row->set_index(steps[i].index);
    row->set_start_ns(steps[i].start_ns);
    row->set_duration_ns(parts.window);
    row->set_kernel_ns(parts.kernel);
    row->set_exposed_communication_ns(parts.exposed_communication);
    row->set_exposed_transfer_ns(parts.exposed_transfer);
    row->set_idle_queued_ns(parts.idle_queued);
    row->set_idle_host_ns(parts.idle_host);
    row->set_idle_sync_ns(parts.idle_sync);
    row->set_idle_launch_ns(parts.idle_launch);
    row->set_idle_unattributed_ns(parts.idle_unattributed);
    row->set_kernels(steps[i].kernels);
  }
  if (steps.size() <= kMaxStepRows) return;
  v1::ParseStatistic cut;
  cut.set_name("step_rows_cut");
  cut.set_severity(v1::PARSE_SEVERITY_INFO);
  cut.set_count(steps.size() - kMaxStepRows);
  cut.set_explanation(
      "Steps beyond the first 10000 have no row of their own; metrics rest on all.");
  lane.builder().AddStatistics({cut}, lane.options().artifact_id);
}

// Kernels inside graphs were not recorded: kernel numbers miss them.
void AddGraphLevelFinding(const Lane& lane) {
  if (!lane.timeline().graph_level_trace) return;
  v1::Finding* finding = lane.builder().result().add_findings();
  finding->set_id("graph_level_trace_hides_kernels");
  finding->set_severity(v1::SEVERITY_WARNING);
  finding->set_detail(
      "CUDA graphs were recorded as a whole: the kernels inside them are hidden, and numbers of "
      "kernels do not contain them. Record with node-level graph tracing to see them.");
}

absl::Status AddLane(const timeline::Timeline& timeline, const timeline::LaneShares& shares,
                     const TimelineOptions& options, ResultBuilder* builder) {
  // Not in the result before it is complete: adding to a repeated field moves
  // nothing, but an error must leave no half of a lane behind.
  v1::Timeline out;
  Lane lane(timeline, shares, options, &out, builder);
  RETURN_IF_ERROR(AddLaneTimes(lane));
  RETURN_IF_ERROR(AddLaneCounts(lane));
  RETURN_IF_ERROR(AddLaneCopies(lane));
  RETURN_IF_ERROR(AddLaneKernels(lane));
  AddStepRows(lane);
  AddGraphLevelFinding(lane);
  *builder->result().add_timelines() = std::move(out);
  return absl::OkStatus();
}

// DRAM bandwidth as the device reports it (nsys asks the driver).
absl::Status AddDeviceBandwidth(const timeline::Timeline& timeline, const TimelineOptions& options,
                                ResultBuilder* builder) {
  if (timeline.tool != "nsys") return absl::OkStatus();
  for (const v1::Gpu& gpu : timeline.gpus) {
    if (gpu.memory_bandwidth() == 0 || gpu.uuid().empty()) continue;
    v1::Measured measured;
    measured.set_tool(timeline.tool);
    measured.set_tool_version(timeline.tool_version);
    measured.set_artifact_id(options.artifact_id);
    measured.set_raw_name("memoryBandwidth");
    measured.mutable_rows()->set_table("TARGET_INFO_GPU");
    AddCondition("uuid", gpu.uuid(), measured.mutable_rows());
    measured.set_aggregation(v1::AGGREGATION_SINGLE);
    measured.set_samples(1);
    RETURN_IF_ERROR(builder
                        ->Measure("device_dram_bandwidth",
                                  static_cast<double>(gpu.memory_bandwidth()),
                                  DeviceScope(gpu.device()), std::move(measured))
                        .status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddTimelineMetrics(const timeline::Timeline& timeline, const TimelineOptions& options,
                                ResultBuilder* builder) {
  ASSIGN_OR_RETURN(const std::vector<timeline::LaneShares> lanes,
                   timeline::ComputeShares(timeline, options.region, options.constraints));
  builder->AddGpus(timeline.gpus, options.artifact_id);
  builder->AddTool(timeline.tool, timeline.tool_version);
  for (const timeline::LaneShares& shares : lanes) {
    RETURN_IF_ERROR(AddLane(timeline, shares, options, builder));
  }
  return AddDeviceBandwidth(timeline, options, builder);
}

}  // namespace solward::profiling
