// What only the run without a profiler tells: how much the profiler slowed the
// host, shares of the true step time, throughput and latency.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/workflow/measure_draft.h"
#include "coordinator/workflow/metric_view.h"

namespace solward::workflow {
namespace {

// Profilers dilate copies and collectives by some percent; a GPU that is busy
// for twice the step time or more was not running that step.
constexpr double kImplausibleBusy = 2;

using Inputs = std::vector<std::pair<std::string, const Metric*>>;

constexpr const char* kBusyParts[] = {"kernel", "communication", "exposed_communication",
                                      "exposed_transfer"};

// Names of the time model's causes of idle in the rescaling formulas.
struct IdleTimes {
  const Metric* queued;
  const Metric* host;
  const Metric* sync;
  const Metric* unattributed;  // nullptr: every cause is known
};

absl::Status AddRescaled(absl::string_view part, const Inputs& inputs, const LaneView& lane,
                         v1::Timeline& timeline, MeasureDraft& draft) {
  ASSIGN_OR_RETURN(const Metric* share, draft.Derive(absl::StrCat("rescaled_", part, "_share"),
                                                     lane.Scope(v1::SCOPE_KIND_STEP), inputs));
  timeline.add_metric_keys(share->key());
  return absl::OkStatus();
}

absl::Status AddRescaledIdle(const IdleTimes& idle, const Metric* step, const Metric* busy,
                             const LaneView& lane, v1::Timeline& timeline, MeasureDraft& draft) {
  Inputs inputs = {{"step_time", step}, {"busy", busy}};
  RETURN_IF_ERROR(AddRescaled("gpu_busy", inputs, lane, timeline, draft));
  RETURN_IF_ERROR(AddRescaled("idle", inputs, lane, timeline, draft));
  inputs.emplace_back("queued", idle.queued);
  RETURN_IF_ERROR(AddRescaled("idle_queued", inputs, lane, timeline, draft));
  inputs.emplace_back("host", idle.host);
  RETURN_IF_ERROR(AddRescaled("idle_host", inputs, lane, timeline, draft));
  inputs.emplace_back("sync", idle.sync);
  RETURN_IF_ERROR(AddRescaled("idle_sync", inputs, lane, timeline, draft));
  if (idle.unattributed == nullptr || idle.unattributed->value() <= 0) {
    return AddRescaled("idle_launch", inputs, lane, timeline, draft);
  }
  inputs.emplace_back("unattributed", idle.unattributed);
  RETURN_IF_ERROR(AddRescaled("idle_unattributed", inputs, lane, timeline, draft));
  return AddRescaled("idle_launch_rest", inputs, lane, timeline, draft);
}

// Causes keep their absolute time in the order queued, host, sync; launch takes
// what is left.
absl::Status AddRescaledShares(const Metric* step, const LaneView& lane, v1::Timeline& timeline,
                               MeasureDraft& draft) {
  const auto time = [&](absl::string_view part) {
    return lane.Find(absl::StrCat(part, "_time"), v1::SCOPE_KIND_STEP);
  };
  const Metric* busy = time("gpu_busy");
  const IdleTimes idle = {time("idle_queued"), time("idle_host"), time("idle_sync"),
                          time("idle_unattributed")};
  if (busy == nullptr || idle.queued == nullptr || idle.host == nullptr || idle.sync == nullptr) {
    return absl::OkStatus();
  }
  for (const char* part : kBusyParts) {
    const Metric* part_time = time(part);
    if (part_time == nullptr) continue;
    RETURN_IF_ERROR(AddRescaled(part, {{"part", part_time}, {"step_time", step}, {"busy", busy}},
                                lane, timeline, draft));
  }
  RETURN_IF_ERROR(AddRescaledIdle(idle, step, busy, lane, timeline, draft));
  if (busy->value() > kImplausibleBusy * step->value()) {
    draft.AddFinding("step_time_implausible", v1::SEVERITY_ERROR,
                     {{"busy", busy}, {"step_time", step}}, {{"tool", timeline.tool()}});
  } else if (busy->value() > step->value()) {
    draft.AddFinding("busy_dilated", v1::SEVERITY_INFO, {{"busy", busy}, {"step_time", step}},
                     {{"tool", timeline.tool()}});
  }
  return absl::OkStatus();
}

// A job's ranks under one tool are slowed alike: said once.
bool AlreadySaid(absl::string_view id, const std::string& tool, const MeasureDraft& draft) {
  for (const v1::Finding& finding : draft.out.findings()) {
    const auto word = finding.words().find("tool");
    if (finding.id() == id && word != finding.words().end() && word->second == tool) return true;
  }
  return false;
}

// How far the profiler stretched a step.
absl::Status AddDilation(const Metric* step, const LaneView& lane, v1::Timeline& timeline,
                         MeasureDraft& draft) {
  const Metric* profiled = lane.Find("profiled_step_time", v1::SCOPE_KIND_STEP);
  ASSIGN_OR_RETURN(const Metric* dilation,
                   draft.Derive("dilation", lane.Scope(v1::SCOPE_KIND_RUN),
                                {{"profiled", profiled}, {"step_time", step}}));
  timeline.add_metric_keys(dilation->key());
  // Closer than two tools may differ is no dilation.
  const double tolerance = draft.catalogue().Find("step_time")->tolerance;
  absl::string_view id = "profiler_cost_small";
  v1::Severity severity = v1::SEVERITY_INFO;
  if (dilation->value() > 1 + tolerance) {
    id = "profiler_slows_host";
    severity = v1::SEVERITY_WARNING;
  } else if (dilation->value() < 1 - tolerance) {
    id = "step_time_longer_than_profiled";
    severity = v1::SEVERITY_WARNING;
  }
  if (AlreadySaid(id, timeline.tool(), draft)) return absl::OkStatus();
  draft.AddFinding(id, severity,
                   {{"dilation", dilation}, {"profiled", profiled}, {"step_time", step}},
                   {{"tool", timeline.tool()}});
  return absl::OkStatus();
}

absl::Status AddLane(v1::Timeline& timeline, MeasureDraft& draft) {
  const LaneView lane(draft.metrics, timeline);
  const Metric* profiled = lane.Find("profiled_step_time", v1::SCOPE_KIND_STEP);
  const Metric* step =
      UnprofiledStepTime(draft.metrics, draft.catalogue(), lane.device(), lane.rank());
  if (step == nullptr || step->value() <= 0) {
    if (profiled != nullptr && !AlreadySaid("dilation_unmeasured", timeline.tool(), draft)) {
      draft.AddFinding("dilation_unmeasured", v1::SEVERITY_INFO, {{"profiled", profiled}},
                       {{"tool", timeline.tool()}});
    }
    return absl::OkStatus();
  }
  if (profiled == nullptr) {
    draft.AddFinding("step_time_without_steps", v1::SEVERITY_WARNING, {{"step_time", step}},
                     {{"tool", timeline.tool()}});
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(AddDilation(step, lane, timeline, draft));
  return AddRescaledShares(step, lane, timeline, draft);
}

// Throughput and latency; never from a profiled run.
absl::Status AddThroughput(const Metric* step, MeasureDraft& draft) {
  const Metric* batch = draft.Context("batch_size");
  const Metric* sequence = draft.Context("sequence_length");
  RETURN_IF_ERROR(draft.Derive("throughput", RunScope(), {{"step_time", step}}).status());
  RETURN_IF_ERROR(draft.Derive("latency", StepScope(), {{"step_time", step}}).status());
  if (batch == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(
      draft.Derive("sample_throughput", RunScope(), {{"batch", batch}, {"step_time", step}})
          .status());
  if (sequence == nullptr) return absl::OkStatus();
  return draft
      .Derive("token_throughput", RunScope(),
              {{"batch", batch}, {"sequence", sequence}, {"step_time", step}})
      .status();
}

void ExplainThroughput(bool step_known, MeasureDraft& draft) {
  for (const char* id : {"throughput", "latency", "sample_throughput", "token_throughput"}) {
    if (!draft.Wants(id) || !draft.metrics.FindAll(id).empty()) continue;
    const v1::ScopeKind scope = draft.catalogue().Find(id)->default_scope;
    if (step_known) {
      draft.AddUnmeasured(id, scope, v1::UNMEASURED_REASON_CONTEXT_MISSING,
                          "the batch size, or for tokens the sequence length, is not known",
                          "give batch_size and sequence_length in the context");
    } else {
      draft.AddUnmeasured(id, scope, v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN,
                          "a profiled run shows the profiler's cost, not the workload's speed",
                          "give step_time of a run without any profiler in the context");
    }
  }
}

}  // namespace

absl::Status AddUnprofiledMetrics(MeasureDraft& draft) {
  for (v1::Timeline& timeline : *draft.out.mutable_timelines()) {
    RETURN_IF_ERROR(AddLane(timeline, draft));
  }
  const Metric* step = UnprofiledStepTime(draft.metrics, draft.catalogue(), -1, -1);
  const bool step_known = step != nullptr && step->value() > 0;
  if (step_known) RETURN_IF_ERROR(AddThroughput(step, draft));
  ExplainThroughput(step_known, draft);
  return absl::OkStatus();
}

}  // namespace solward::workflow
