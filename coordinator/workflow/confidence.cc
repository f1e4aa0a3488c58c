#include "coordinator/workflow/confidence.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "common/status.h"

namespace solward::workflow {
namespace {

// Kernels named as missing counters.
constexpr size_t kKernelsNamed = 5;

bool IsKernelClass(v1::BottleneckClass c) {
  return c == v1::BOTTLENECK_CLASS_COMPUTE_BOUND || c == v1::BOTTLENECK_CLASS_MEMORY_BOUND ||
         c == v1::BOTTLENECK_CLASS_LATENCY_BOUND;
}

bool IsUndetermined(v1::BottleneckClass c) {
  return c == v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS ||
         c == v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION ||
         c == v1::BOTTLENECK_CLASS_UNDETERMINED_NO_EVIDENCE;
}

bool IsOverhead(v1::BottleneckClass c) { return !IsKernelClass(c) && !IsUndetermined(c); }

class Reasons {
 public:
  explicit Reasons(v1::Classification& out) : out_(out) {}

  v1::Statement& Add(
      absl::string_view id,
      std::initializer_list<std::pair<absl::string_view, const Metric*>> metrics = {}) {
    v1::Statement& reason = *out_.add_confidence_reasons();
    reason.set_message_id(std::string(id));
    for (const auto& [name, metric] : metrics) {
      (*reason.mutable_arguments())[std::string(name)].set_metric_key(metric->key());
    }
    return reason;
  }

 private:
  v1::Classification& out_;
};

// Reasons of a verdict on a timeline.
absl::Status AddTimelineReasons(const Verdict& verdict, const v1::Timeline& timeline,
                                ClassifyDraft& draft, Reasons& reasons) {
  const LaneView lane(draft.metrics(), timeline);
  const bool overhead = IsOverhead(verdict.primary());
  if (overhead && !verdict.rescaled) reasons.Add("confidence.dilation_unmeasured");
  if (overhead && !lane.HasSteps()) reasons.Add("confidence.no_steps");
  if (verdict.host_side_failed) {
    reasons.Add("confidence.larger_overhead_not_robust", {{"share", verdict.largest_overhead}});
  }
  const Metric* busy = lane.Time("gpu_busy_time");
  const Metric* step =
      UnprofiledStepTime(draft.metrics(), draft.catalogue(), lane.device(), lane.rank());
  if (verdict.rescaled && busy != nullptr && step != nullptr && busy->value() > step->value()) {
    reasons.Add("confidence.busy_dilated", {{"busy", busy}, {"step_time", step}});
  }
  if (overhead && !verdict.kernels.any()) reasons.Add("confidence.kernels_unrated");
  if (timeline.graph_level_trace()) reasons.Add("confidence.graph_level_trace");
  const double floor = draft.parameters().floor_percent;
  if (verdict.unattributed != nullptr && verdict.unattributed->value() >= floor) {
    reasons.Add("confidence.idle_unattributed", {{"share", verdict.unattributed}});
  }
  const double margin = draft.parameters().margin_percent;
  if (verdict.largest_overhead != nullptr &&
      std::abs(verdict.largest_overhead->value() - floor) < margin) {
    ASSIGN_OR_RETURN(const Metric* floor_metric, draft.Parameter("floor_percent"));
    reasons.Add("confidence.near_floor",
                {{"share", verdict.largest_overhead}, {"floor", floor_metric}});
  }
  return absl::OkStatus();
}

// Reasons that lie in the counters.
absl::Status AddKernelReasons(const Verdict& verdict, ClassifyDraft& draft, Reasons& reasons) {
  const KernelTimeRating& kernels = verdict.kernels;
  if (!IsKernelClass(verdict.primary())) return absl::OkStatus();
  if (kernels.UnratedPercent() >= draft.parameters().floor_percent) {
    reasons.Add("confidence.kernels_partly_rated", {{"share", kernels.unrated_time_share}});
  }
  for (const v1::KernelLimit& limit : kernels.limits) {
    if (limit.limit() != verdict.primary()) continue;
    const Metric* utilization = draft.metrics().FindKey(limit.utilization_key());
    const double threshold = draft.parameters().limit_threshold_percent;
    if (limit.second_limit() != v1::BOTTLENECK_CLASS_UNSPECIFIED) {
      v1::Statement& reason = reasons.Add("confidence.two_limits", {{"utilization", utilization}});
      (*reason.mutable_arguments())["kernel"].set_name(limit.kernel());
      (*reason.mutable_arguments())["second"].set_term(ClassTerm(limit.second_limit()));
    }
    if (std::abs(utilization->value() - threshold) < draft.parameters().margin_percent) {
      ASSIGN_OR_RETURN(const Metric* parameter, draft.Parameter("limit_threshold_percent"));
      v1::Statement& reason = reasons.Add("confidence.near_threshold",
                                          {{"utilization", utilization}, {"threshold", parameter}});
      (*reason.mutable_arguments())["kernel"].set_name(limit.kernel());
    }
    break;  // the longest kernel of the class speaks for it
  }
  return absl::OkStatus();
}

void AddOtherViews(const Verdict& verdict, const v1::Timeline* timeline,
                   const std::vector<OtherView>& others, Reasons& reasons) {
  for (const OtherView& other : others) {
    if (timeline == nullptr || other.verdict.primary() == verdict.primary()) continue;
    v1::Statement& reason = reasons.Add("confidence.tools_disagree");
    auto& arguments = *reason.mutable_arguments();
    arguments["first_tool"].set_name(timeline->tool());
    arguments["second_tool"].set_name(other.timeline->tool());
    arguments["second_class"].set_term(ClassTerm(other.verdict.primary()));
  }
}

void AddInputReasons(const v1::Measurement& measurement, Reasons& reasons) {
  for (const v1::ParseStatistic& statistic : measurement.parse_statistics()) {
    if (statistic.count() == 0 || statistic.severity() < v1::PARSE_SEVERITY_DATA_LOSS) continue;
    reasons.Add("confidence.data_loss");
    break;
  }
  for (const v1::Finding& finding : measurement.findings()) {
    if (finding.id() != "mfu_impossible") continue;
    reasons.Add("confidence.mfu_impossible");
    break;
  }
}

v1::MissingEvidence& AddMissing(absl::string_view message_id,
                                std::initializer_list<const char*> metric_ids,
                                v1::Classification& out) {
  v1::MissingEvidence& missing = *out.add_missing();
  for (const char* id : metric_ids) missing.add_metric_ids(id);
  missing.mutable_why()->set_message_id(std::string(message_id));
  return missing;
}

void AddMissingCounters(const std::vector<std::string>& kernels, v1::Classification& out) {
  v1::MissingEvidence& missing = AddMissing(
      "missing.kernel_counters",
      {"compute_throughput", "memory_throughput", "achieved_occupancy", "warp_stall"}, out);
  for (size_t i = 0; i < std::min(kernels.size(), kKernelsNamed); ++i) {
    missing.add_kernels(kernels[i]);
  }
}

}  // namespace

absl::Status SetConfidence(const Verdict& verdict, const v1::Timeline* timeline,
                           const std::vector<OtherView>& others, ClassifyDraft& draft,
                           v1::Classification& out) {
  Reasons reasons(out);
  if (verdict.primary() == v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS) {
    reasons.Add("confidence.undetermined_kernels");
  } else if (verdict.primary() == v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION) {
    reasons.Add("confidence.undetermined_dilation");
  } else if (verdict.primary() == v1::BOTTLENECK_CLASS_UNDETERMINED_NO_EVIDENCE) {
    reasons.Add("confidence.no_evidence");
  }
  if (timeline != nullptr) RETURN_IF_ERROR(AddTimelineReasons(verdict, *timeline, draft, reasons));
  RETURN_IF_ERROR(AddKernelReasons(verdict, draft, reasons));
  AddOtherViews(verdict, timeline, others, reasons);
  AddInputReasons(draft.measurement(), reasons);
  if (out.within_margin()) {
    v1::Statement& reason = reasons.Add("confidence.within_margin");
    (*reason.mutable_arguments())["margin"].set_metric_key(out.margin_key());
  }
  if (IsUndetermined(verdict.primary())) {
    out.set_confidence(v1::CONFIDENCE_LOW);
  } else if (out.confidence_reasons().empty()) {
    out.set_confidence(v1::CONFIDENCE_HIGH);
  } else {
    out.set_confidence(v1::CONFIDENCE_MEDIUM);
  }
  return absl::OkStatus();
}

void SetMissing(const Verdict& verdict, const std::vector<CountedKernel>& counted,
                v1::Classification& out) {
  std::vector<std::string> kernels = verdict.kernels.unrated;
  if (kernels.empty() && !verdict.from_timeline) {
    for (const CountedKernel& kernel : counted) kernels.push_back(kernel.name);
  }
  switch (verdict.primary()) {
    case v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION: {
      v1::MissingEvidence& missing = AddMissing("missing.step_time", {"step_time"}, out);
      if (verdict.flip_step_time != nullptr) {
        (*missing.mutable_why()->mutable_arguments())["flip"].set_metric_key(
            verdict.flip_step_time->key());
      }
      if (!verdict.kernels.any()) AddMissingCounters(kernels, out);
      break;
    }
    case v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS:
      AddMissingCounters(kernels, out);
      break;
    case v1::BOTTLENECK_CLASS_UNDETERMINED_NO_EVIDENCE:
      AddMissing("missing.timeline", {"gpu_busy_share", "kernel_time"}, out);
      AddMissingCounters({}, out);
      break;
    default:
      break;
  }
}

}  // namespace solward::workflow
