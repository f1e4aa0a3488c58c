#include "coordinator/workflow/host_verdict.h"

#include "common/status.h"

namespace solward::workflow {
namespace {

// Launching overlaps the GPU: idle is what launching takes beyond busy time.
absl::StatusOr<FloorTest> TestLaunch(const LaneView& lane, const Metric* busy,
                                     ClassifyDraft& draft) {
  FloorTest test;
  const Metric* calls = lane.Time("launch_call_count");
  if (calls == nullptr || calls->value() <= 0) return test;
  ASSIGN_OR_RETURN(const Metric* cost, draft.Parameter("launch_call_ns"));
  ASSIGN_OR_RETURN(const Metric* time, draft.Derive("launch_floor_time", lane.TimeScope(),
                                                    {{"calls", calls}, {"cost", cost}}));
  ASSIGN_OR_RETURN(const Metric* share, draft.Derive("launch_floor_share", lane.TimeScope(),
                                                     {{"busy", busy}, {"floor_time", time}}));
  test.holds = share->value() >= draft.parameters().floor_percent;
  test.evidence = {share, time, calls};
  return test;
}

absl::StatusOr<FloorTest> TestAddedTime(const LaneView& lane, const Metric* busy,
                                        const Metric* time, ClassifyDraft& draft) {
  FloorTest test;
  if (busy->value() + time->value() <= 0) return test;
  ASSIGN_OR_RETURN(const Metric* share, draft.Derive("host_floor_share", lane.TimeScope(),
                                                     {{"floor_time", time}, {"busy", busy}}));
  test.holds = share->value() >= draft.parameters().floor_percent;
  test.evidence = {share, time};
  return test;
}

absl::StatusOr<FloorTest> TestSynchronization(const LaneView& lane, const Metric* busy,
                                              ClassifyDraft& draft) {
  const Metric* calls = lane.Time("synchronization_count");
  if (calls == nullptr) return FloorTest{};
  ASSIGN_OR_RETURN(const Metric* cost, draft.Parameter("synchronization_ns"));
  ASSIGN_OR_RETURN(const Metric* time, draft.Derive("sync_floor_time", lane.TimeScope(),
                                                    {{"calls", calls}, {"cost", cost}}));
  ASSIGN_OR_RETURN(FloorTest test, TestAddedTime(lane, busy, time, draft));
  test.evidence.push_back(calls);
  return test;
}

absl::StatusOr<FloorTest> TestHost(const LaneView& lane, const Metric* busy, ClassifyDraft& draft) {
  const Metric* stretches = lane.Time("host_stretch_time");
  if (stretches == nullptr) return FloorTest{};
  ASSIGN_OR_RETURN(const Metric* time,
                   draft.Derive("host_floor_time", lane.TimeScope(), {{"stretches", stretches}}));
  return TestAddedTime(lane, busy, time, draft);
}

}  // namespace

absl::StatusOr<FloorTest> TestFloor(v1::BottleneckClass overhead, const LaneView& lane,
                                    ClassifyDraft& draft) {
  const Metric* busy = lane.Time("gpu_busy_time");
  if (busy == nullptr) return FloorTest{};
  switch (overhead) {
    case v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD:
      return TestLaunch(lane, busy, draft);
    case v1::BOTTLENECK_CLASS_SYNC_BOUND:
      return TestSynchronization(lane, busy, draft);
    case v1::BOTTLENECK_CLASS_HOST_BOUND:
      return TestHost(lane, busy, draft);
    default:
      return MakeError(absl::StatusCode::kInternal, "NOT_HOST_SIDE",
                       ClassName(overhead) + " is no host-side overhead");
  }
}

absl::StatusOr<const Metric*> FlipStepTime(const LaneView& lane, ClassifyDraft& draft) {
  const Metric* busy = lane.Time("gpu_busy_time");
  if (busy == nullptr) return static_cast<const Metric*>(nullptr);
  ASSIGN_OR_RETURN(const Metric* floor, draft.Parameter("floor_percent"));
  return draft.Derive("flip_step_time", lane.TimeScope(), {{"busy", busy}, {"floor", floor}});
}

}  // namespace solward::workflow
