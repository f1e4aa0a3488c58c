// Whether a host-side verdict holds although the profiler slowed the host.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_HOST_VERDICT_H_
#define SOLWARD_COORDINATOR_WORKFLOW_HOST_VERDICT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/workflow/classify_draft.h"
#include "coordinator/workflow/metric_view.h"

namespace solward::workflow {

// Launch, synchronization or host overhead tested without an unprofiled step
// time: by the least that so many calls cost on any host, or by stretches too
// long to be a profiler's.
struct FloorTest {
  bool holds = false;
  // Floor share first; empty when a number of the test is not there.
  std::vector<const Metric*> evidence;
};

// `overhead` is LAUNCH_OVERHEAD, SYNC_BOUND or HOST_BOUND.
//   launch  calls x 2 us reach B / (1 - floor)
//   sync    calls x 5 us reach the floor of (B + that)
//   host    stretches of 1 ms and more alone reach the floor
absl::StatusOr<FloorTest> TestFloor(v1::BottleneckClass overhead, const LaneView& lane,
                                    ClassifyDraft& draft);

// T* = B / (1 - floor): the host side is the bottleneck of a step that takes
// longer than this without a profiler. nullptr when busy time is not known.
absl::StatusOr<const Metric*> FlipStepTime(const LaneView& lane, ClassifyDraft& draft);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_HOST_VERDICT_H_
