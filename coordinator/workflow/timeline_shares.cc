// Shares of the window: time of a part over the window.
#include "common/status.h"
#include "coordinator/workflow/measure_draft.h"
#include "coordinator/workflow/metric_view.h"
#include "coordinator/workflow/shares.h"

namespace solward::workflow {
namespace {

// Part and whole in one scope: the window, or one step when only that is known.
absl::Status AddShare(const SharePart& part, const LaneView& lane, v1::Timeline& timeline,
                      MeasureDraft& draft) {
  const Metric* time = lane.Find(part.time_id, v1::SCOPE_KIND_RUN);
  const Metric* whole = lane.Find("window_time", v1::SCOPE_KIND_RUN);
  if (time == nullptr || whole == nullptr) {
    time = lane.Find(part.time_id, v1::SCOPE_KIND_STEP);
    whole = lane.Find("profiled_step_time", v1::SCOPE_KIND_STEP);
  }
  if (time == nullptr || whole == nullptr || whole->value() <= 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Metric* share, draft.Derive(part.share_id, lane.Scope(v1::SCOPE_KIND_RUN),
                                                     {{"part", time}, {"window", whole}}));
  timeline.add_metric_keys(share->key());
  return absl::OkStatus();
}

}  // namespace

absl::Status AddWindowShares(MeasureDraft& draft) {
  for (v1::Timeline& timeline : *draft.out.mutable_timelines()) {
    for (const SharePart& part : kShareParts) {
      const LaneView lane(draft.metrics, timeline);
      if (lane.Find(part.share_id, v1::SCOPE_KIND_RUN) != nullptr) continue;
      RETURN_IF_ERROR(AddShare(part, lane, timeline, draft));
    }
  }
  return absl::OkStatus();
}

}  // namespace solward::workflow
