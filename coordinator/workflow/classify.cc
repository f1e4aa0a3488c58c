#include "coordinator/workflow/classify.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "common/status.h"
#include "coordinator/workflow/classify_draft.h"
#include "coordinator/workflow/confidence.h"
#include "coordinator/workflow/kernel_limits.h"
#include "coordinator/workflow/lane_verdict.h"
#include "coordinator/workflow/metric_view.h"

namespace solward::workflow {
namespace {

// One GPU of one process, with other captures of the same.
struct Lane {
  LaneView view;
  std::vector<LaneView> other_captures;
};

// Lanes as the most trusted tool saw each.
std::vector<Lane> Lanes(const ClassifyDraft& draft) {
  std::vector<LaneView> views;
  for (const v1::Timeline& timeline : draft.measurement().timelines()) {
    LaneView view(draft.metrics(), timeline);
    if (HasShares(view)) views.push_back(std::move(view));
  }
  std::stable_sort(views.begin(), views.end(), [&](const LaneView& a, const LaneView& b) {
    return ToolRank(draft.catalogue(), a.timeline().tool()) <
           ToolRank(draft.catalogue(), b.timeline().tool());
  });
  std::vector<Lane> lanes;
  for (LaneView& view : views) {
    const auto known = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& lane) {
      return lane.view.timeline().artifact_id() != view.timeline().artifact_id() &&
             SameLane(lane.view.device(), lane.view.rank(), view.device(), view.rank());
    });
    if (known != lanes.end()) {
      known->other_captures.push_back(std::move(view));
    } else {
      lanes.push_back({std::move(view), {}});
    }
  }
  return lanes;
}

// Busy time of the window; for comparing GPUs of one process only.
double BusyNs(const LaneView& lane) {
  const Metric* window = lane.Find("window_time", v1::SCOPE_KIND_RUN);
  const Metric* busy = lane.Find("gpu_busy_share", v1::SCOPE_KIND_RUN);
  return window == nullptr || busy == nullptr ? 0 : window->value() * busy->value() / 100;
}

bool RunsKernels(const LaneView& lane) {
  return lane.Find("kernel_share", v1::SCOPE_KIND_RUN)->value() > 0;
}

// A process is judged by its busiest GPU (one it hardly uses would read idle),
// a job by its rank with the largest overhead.
const Lane* Representative(const std::vector<Lane>& lanes) {
  std::vector<const Lane*> busiest;
  for (const Lane& lane : lanes) {
    const v1::Timeline& timeline = lane.view.timeline();
    const auto same = std::find_if(busiest.begin(), busiest.end(), [&](const Lane* other) {
      return other->view.timeline().artifact_id() == timeline.artifact_id() &&
             other->view.timeline().process_id() == timeline.process_id();
    });
    if (same == busiest.end()) {
      busiest.push_back(&lane);
    } else if (BusyNs(lane.view) > BusyNs((*same)->view)) {
      *same = &lane;
    }
  }
  const Lane* chosen = nullptr;
  for (const Lane* lane : busiest) {
    const bool better = chosen == nullptr ||
                        (RunsKernels(lane->view) && !RunsKernels(chosen->view)) ||
                        (RunsKernels(lane->view) == RunsKernels(chosen->view) &&
                         LargestOverheadPercent(lane->view) > LargestOverheadPercent(chosen->view));
    if (better) chosen = lane;
  }
  return chosen;
}

void AddKeys(const std::vector<const Metric*>& metrics, v1::RankedClass& out) {
  std::set<std::string> listed(out.evidence_keys().begin(), out.evidence_keys().end());
  listed.insert(out.share_key());
  listed.insert(out.recoverable_key());
  for (const Metric* metric : metrics) {
    if (listed.insert(metric->key()).second) out.add_evidence_keys(metric->key());
  }
}

void AddRanking(const Verdict& verdict, v1::Classification& out) {
  for (const ClassEvidence& entry : verdict.ranking) {
    v1::RankedClass& ranked = *out.add_ranking();
    ranked.set_bottleneck_class(entry.bottleneck_class);
    if (entry.share != nullptr) ranked.set_share_key(entry.share->key());
    if (entry.recoverable != nullptr) ranked.set_recoverable_key(entry.recoverable->key());
    AddKeys(entry.evidence, ranked);
  }
  out.set_primary(verdict.primary());
}

// The same class in the job's other lanes.
void AddOtherLanes(const std::vector<Lane>& lanes, const Lane* chosen, v1::Classification& out) {
  if (out.ranking().empty()) return;
  std::vector<const Metric*> shares;
  for (const Lane& lane : lanes) {
    if (&lane == chosen) continue;
    if (const Metric* share = ShareOf(out.primary(), lane.view)) shares.push_back(share);
  }
  AddKeys(shares, *out.mutable_ranking(0));
}

// Whether the first two classes are too close to call.
absl::Status SetMargin(const Verdict& verdict, ClassifyDraft& draft, v1::Classification& out) {
  if (verdict.ranking.size() < 2) return absl::OkStatus();
  const ClassEvidence& first = verdict.ranking[0];
  const ClassEvidence& second = verdict.ranking[1];
  if (first.recoverable == nullptr || second.recoverable == nullptr) return absl::OkStatus();
  v1::Scope scope = first.recoverable->scope();
  scope.set_name("");
  if (scope.kind() == v1::SCOPE_KIND_KERNEL) scope.set_kind(v1::SCOPE_KIND_RUN);
  ASSIGN_OR_RETURN(const Metric* margin,
                   draft.Derive("recoverable_margin", scope,
                                {{"first", first.recoverable}, {"second", second.recoverable}}));
  out.set_margin_key(margin->key());
  out.set_within_margin(!second.below_floor &&
                        std::abs(margin->value()) <= draft.parameters().margin_percent);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OtherView>> JudgeOtherCaptures(const Lane& lane,
                                                          const std::vector<RatedKernel>& rated,
                                                          ClassifyDraft& draft) {
  std::vector<OtherView> others;
  for (const LaneView& view : lane.other_captures) {
    ASSIGN_OR_RETURN(Verdict verdict, JudgeLane(view, rated, draft));
    others.push_back({&view.timeline(), std::move(verdict)});
  }
  return others;
}

// The GPU the verdict speaks of; -1 when there is none.
void SetPlace(const Verdict& verdict, const Lane* chosen, v1::Classification& out) {
  out.set_device(-1);
  out.set_rank(-1);
  if (chosen != nullptr) {
    out.set_device(chosen->view.device());
    out.set_rank(chosen->view.rank());
  } else if (!verdict.ranking.empty() && verdict.ranking.front().share != nullptr) {
    out.set_device(verdict.ranking.front().share->scope().device());
    out.set_rank(verdict.ranking.front().share->scope().rank());
  }
}

absl::StatusOr<v1::Classification> Assemble(const Verdict& verdict, const std::vector<Lane>& lanes,
                                            const Lane* chosen,
                                            const std::vector<OtherView>& others,
                                            const std::vector<CountedKernel>& counted,
                                            ClassifyDraft& draft) {
  v1::Classification out;
  AddRanking(verdict, out);
  AddOtherLanes(lanes, chosen, out);
  RETURN_IF_ERROR(SetMargin(verdict, draft, out));
  if (verdict.flip_step_time != nullptr) {
    out.set_flip_step_time_key(verdict.flip_step_time->key());
  }
  out.set_rescaled(verdict.rescaled);
  out.set_kernels_unrated(!verdict.kernels.any());
  for (const v1::KernelLimit& limit : verdict.kernels.limits) *out.add_kernel_limits() = limit;
  SetPlace(verdict, chosen, out);
  SetMissing(verdict, counted, out);
  RETURN_IF_ERROR(SetConfidence(verdict, chosen == nullptr ? nullptr : &chosen->view.timeline(),
                                others, draft, out));
  for (v1::Metric& metric : draft.NewMetrics()) *out.add_metrics() = std::move(metric);
  return out;
}

}  // namespace

absl::StatusOr<v1::Classification> Classify(const v1::Measurement& measurement,
                                            const Knowledge& knowledge) {
  ASSIGN_OR_RETURN(ClassifyDraft draft, ClassifyDraft::Make(measurement, knowledge));
  const std::vector<CountedKernel> counted = CountedKernels(
      draft.metrics(), measurement.kernels(), measurement.timelines(), knowledge.catalogue);
  const std::vector<RatedKernel> rated = RateKernels(counted, draft);
  const std::vector<Lane> lanes = Lanes(draft);
  const Lane* chosen = Representative(lanes);
  Verdict verdict;
  std::vector<OtherView> others;
  if (chosen != nullptr) {
    ASSIGN_OR_RETURN(verdict, JudgeLane(chosen->view, rated, draft));
    ASSIGN_OR_RETURN(others, JudgeOtherCaptures(*chosen, rated, draft));
  } else if (!counted.empty()) {
    ASSIGN_OR_RETURN(verdict, JudgeCounters(counted, rated, draft));
  }
  return Assemble(verdict, lanes, chosen, others, counted, draft);
}

}  // namespace solward::workflow
