// The verdict on one GPU of one process: which class its time speaks for.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_LANE_VERDICT_H_
#define SOLWARD_COORDINATOR_WORKFLOW_LANE_VERDICT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/workflow/classify_draft.h"
#include "coordinator/workflow/kernel_limits.h"
#include "coordinator/workflow/metric_view.h"

namespace solward::workflow {

// A class with what speaks for it.
struct ClassEvidence {
  v1::BottleneckClass bottleneck_class = v1::BOTTLENECK_CLASS_UNSPECIFIED;
  const Metric* share = nullptr;        // of window, step or profiled kernel time
  const Metric* recoverable = nullptr;  // upper bound; nullptr: not known
  std::vector<const Metric*> evidence;
  bool below_floor = false;  // an overhead too small to be the bottleneck
};

struct Verdict {
  std::vector<ClassEvidence> ranking;  // primary first; empty: no evidence
  KernelTimeRating kernels;
  bool rescaled = false;  // shares are of the unprofiled step
  bool from_timeline = false;
  bool host_side_failed = false;             // a larger host-side overhead failed its floor test
  const Metric* flip_step_time = nullptr;    // of an undetermined host-side verdict
  const Metric* largest_overhead = nullptr;  // its share
  const Metric* unattributed = nullptr;      // share of idle without a known cause

  v1::BottleneckClass primary() const;
};

// Whether the window's shares are there at all.
bool HasShares(const LaneView& lane);

// Share of the largest overhead (communication, transfer, launch, sync, host).
double LargestOverheadPercent(const LaneView& lane);

// Share that speaks for a class in this lane; nullptr when it has none.
const Metric* ShareOf(v1::BottleneckClass bottleneck_class, const LaneView& lane);

// INTERNAL when the lane's shares do not sum to 100 % ± 0.1.
absl::StatusOr<Verdict> JudgeLane(const LaneView& lane, const std::vector<RatedKernel>& rated,
                                  ClassifyDraft& draft);

// Counters without a timeline.
absl::StatusOr<Verdict> JudgeCounters(const std::vector<CountedKernel>& counted,
                                      const std::vector<RatedKernel>& rated, ClassifyDraft& draft);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_LANE_VERDICT_H_
