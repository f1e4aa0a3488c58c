#include "agents/profiling/lane_metrics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::profiling {

using timeline::TimeParts;

Lane::Lane(const timeline::Timeline& timeline, const timeline::LaneShares& shares,
           const TimelineOptions& options, v1::Timeline* out, ResultBuilder* builder)
    : timeline_(timeline),
      shares_(shares),
      process_(timeline.processes[shares.process]),
      lane_(process_.lanes[shares.lane]),
      options_(options),
      out_(*out),
      builder_(*builder) {
  run_ = {shares.window_start_ns, shares.window_end_ns, 0};
  if (!shares.steps.empty()) {
    const timeline::StepParts& last = shares.steps.back();
    int64_t end = last.start_ns + last.parts.window;
    // What starts where the last step ends belongs to what follows.
    if (end < shares.window_end_ns) --end;
    steps_ = {shares.steps.front().start_ns, end, shares.steps.size()};
  }
  out_.set_device(device());
  out_.set_rank(rank());
  out_.set_process_id(process_.pid);
  out_.set_artifact_id(options.artifact_id);
  out_.set_tool(timeline.tool);
  out_.set_step_marker(shares.step_marker);
  out_.set_graph_level_trace(timeline.graph_level_trace);
}

std::vector<CountWindow> Lane::windows() const {
  std::vector<CountWindow> all = {run_};
  if (steps() != nullptr) all.push_back(steps_);
  return all;
}

v1::Scope Lane::Scope(const CountWindow& window, absl::string_view name) const {
  v1::Scope scope = window.per_step() ? StepScope(device(), rank()) : RunScope(device(), rank());
  scope.set_name(std::string(name));
  return scope;
}

v1::Measured Lane::RowsOf(absl::string_view table, absl::string_view raw_name,
                          const CountWindow& window, v1::Aggregation aggregation,
                          uint64_t samples) const {
  v1::Measured measured;
  measured.set_tool(timeline_.tool);
  measured.set_tool_version(timeline_.tool_version);
  measured.set_artifact_id(options_.artifact_id);
  measured.set_raw_name(std::string(raw_name));
  v1::RowSelection* rows = measured.mutable_rows();
  rows->set_table(std::string(table));
  AddCondition("pid", absl::StrCat(process_.pid), rows);
  AddCondition("device", absl::StrCat(device()), rows);
  rows->set_window_start_ns(window.start_ns);
  rows->set_window_end_ns(window.end_ns);
  measured.set_aggregation(aggregation);
  measured.set_samples(samples);
  return measured;
}

v1::Aggregation Lane::CountOf(const CountWindow& window) {
  return window.per_step() ? v1::AGGREGATION_COUNT_PER_STEP : v1::AGGREGATION_COUNT;
}

v1::Aggregation Lane::SumOf(const CountWindow& window) {
  return window.per_step() ? v1::AGGREGATION_SUM_PER_STEP : v1::AGGREGATION_SUM;
}

absl::StatusOr<const Metric*> Lane::AddRows(absl::string_view id, double total,
                                            const CountWindow& window, absl::string_view name,
                                            v1::Measured provenance) {
  double value = total;
  if (window.per_step()) {
    value = total / static_cast<double>(window.steps);
    provenance.set_samples(window.steps);
  }
  return Keep(builder_.Measure(id, value, Scope(window, name), std::move(provenance)));
}

absl::StatusOr<const Metric*> Lane::Derive(
    absl::string_view formula, v1::Scope scope,
    const std::vector<std::pair<std::string, const Metric*>>& inputs) {
  return Keep(builder_.Derive(formula, std::move(scope), inputs));
}

absl::StatusOr<const Metric*> Lane::Keep(absl::StatusOr<const Metric*> metric) {
  if (metric.ok()) out_.add_metric_keys((*metric)->key());
  return metric;
}

const std::vector<NamedPart>& NamedParts() {
  static const auto* const kParts = new std::vector<NamedPart>{
      {"window", [](const TimeParts& p) { return p.window; }},
      {"busy", [](const TimeParts& p) { return p.busy(); }},
      {"kernel", [](const TimeParts& p) { return p.kernel; }},
      {"communication", [](const TimeParts& p) { return p.communication; }},
      {"exposed_communication", [](const TimeParts& p) { return p.exposed_communication; }},
      {"transfer", [](const TimeParts& p) { return p.transfer; }},
      {"exposed_transfer", [](const TimeParts& p) { return p.exposed_transfer; }},
      {"idle_queued", [](const TimeParts& p) { return p.idle_queued; }},
      {"idle_host", [](const TimeParts& p) { return p.idle_host; }},
      {"idle_sync", [](const TimeParts& p) { return p.idle_sync; }},
      {"idle_launch", [](const TimeParts& p) { return p.idle_launch; }},
      {"idle_unattributed", [](const TimeParts& p) { return p.idle_unattributed; }},
      {"host_stretches_1ms", [](const TimeParts& p) { return p.host_stretches_1ms; }},
  };
  return *kParts;
}

namespace {

struct TimeMetric {
  absl::string_view raw_name, id;
  absl::string_view share_formula;  // empty: no share of it
};

// `window` stands apart: window_time of the run, profiled_step_time of a step.
constexpr TimeMetric kTimeMetrics[] = {
    {"busy", "gpu_busy_time", "gpu_busy_share"},
    {"kernel", "kernel_time", "kernel_share"},
    {"communication", "communication_time", "communication_share"},
    {"exposed_communication", "exposed_communication_time", "exposed_communication_share"},
    {"transfer", "transfer_time", ""},
    {"exposed_transfer", "exposed_transfer_time", "exposed_transfer_share"},
    {"idle_queued", "idle_queued_time", "idle_queued_share"},
    {"idle_host", "idle_host_time", "idle_host_share"},
    {"idle_sync", "idle_sync_time", "idle_sync_share"},
    {"idle_launch", "idle_launch_time", "idle_launch_share"},
    {"idle_unattributed", "idle_unattributed_time", "idle_unattributed_share"},
    {"host_stretches_1ms", "host_stretch_time", ""},
};

const NamedPart& PartOf(absl::string_view raw_name) {
  return *std::find_if(NamedParts().begin(), NamedParts().end(),
                       [&](const NamedPart& part) { return part.raw_name == raw_name; });
}

// Times of the time model in one scope.
class Times {
 public:
  Times(Lane& lane, const CountWindow& window) : lane_(lane), window_(window) {}

  absl::Status Add() {
    ASSIGN_OR_RETURN(const Metric* window,
                     AddPart("window", window_.per_step() ? "profiled_step_time" : "window_time"));
    for (const TimeMetric& metric : kTimeMetrics) {
      ASSIGN_OR_RETURN(const Metric* time, AddPart(metric.raw_name, metric.id));
      if (metric.id == "gpu_busy_time") RETURN_IF_ERROR(AddIdle(window, time));
      if (window_.per_step() || metric.share_formula.empty() || window->value() <= 0) continue;
      RETURN_IF_ERROR(AddShare(metric.share_formula, time, window));
    }
    return absl::OkStatus();
  }

 private:
  v1::Measured Provenance(absl::string_view raw_name) const {
    v1::Measured measured = lane_.RowsOf(
        "timeline", raw_name, window_,
        window_.per_step() ? v1::AGGREGATION_TIME_MODEL_PER_STEP : v1::AGGREGATION_TIME_MODEL,
        window_.per_step() ? window_.steps : 1);
    AddRegionConditions(lane_.options().region, measured.mutable_rows());
    return measured;
  }

  absl::StatusOr<const Metric*> AddPart(absl::string_view raw_name, absl::string_view id) {
    const NamedPart& part = PartOf(raw_name);
    v1::Measured measured = Provenance(raw_name);
    if (window_.per_step()) {
      std::vector<double> values;
      for (const timeline::StepParts& step : lane_.shares().steps) {
        values.push_back(static_cast<double>(part.of(step.parts)));
      }
      SetSpread(values, &measured);
    }
    const TimeParts& parts = window_.per_step() ? lane_.shares().in_steps : lane_.shares().whole;
    return lane_.AddRows(id, static_cast<double>(part.of(parts)), window_, "", std::move(measured));
  }

  absl::Status AddIdle(const Metric* window, const Metric* busy) {
    ASSIGN_OR_RETURN(const Metric* idle, lane_.Derive("idle_time", lane_.Scope(window_),
                                                      {{"window", window}, {"busy", busy}}));
    if (window_.per_step() || window->value() <= 0) return absl::OkStatus();
    return AddShare("idle_share", idle, window);
  }

  absl::Status AddShare(absl::string_view formula, const Metric* part, const Metric* window) {
    return lane_.Derive(formula, lane_.Scope(window_), {{"part", part}, {"window", window}})
        .status();
  }

  Lane& lane_;
  const CountWindow window_;
};

// Length of the region before and after GPU activity, and the steps found.
absl::Status AddBorders(Lane& lane) {
  const std::pair<const char*, std::pair<const char*, int64_t>> borders[] = {
      {"lead_in_time", {"lead_in", lane.shares().lead_in_ns}},
      {"tail_time", {"tail", lane.shares().tail_ns}}};
  for (const auto& [id, border] : borders) {
    v1::Measured measured =
        lane.RowsOf("timeline", border.first, lane.run(), v1::AGGREGATION_TIME_MODEL, 1);
    AddRegionConditions(lane.options().region, measured.mutable_rows());
    RETURN_IF_ERROR(
        lane.AddRows(id, static_cast<double>(border.second), lane.run(), "", std::move(measured))
            .status());
  }
  if (lane.steps() == nullptr) return absl::OkStatus();
  const uint64_t steps = lane.steps()->steps;
  v1::Measured measured =
      lane.RowsOf("timeline", "steps", lane.run(), v1::AGGREGATION_COUNT, steps);
  AddRegionConditions(lane.options().region, measured.mutable_rows());
  return lane.AddRows("step_count", static_cast<double>(steps), lane.run(), "", std::move(measured))
      .status();
}

}  // namespace

absl::Status AddLaneTimes(Lane& lane) {
  for (const CountWindow& window : lane.windows()) RETURN_IF_ERROR(Times(lane, window).Add());
  return AddBorders(lane);
}

}  // namespace solward::profiling
