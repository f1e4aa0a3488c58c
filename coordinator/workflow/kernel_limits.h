// What limits each kernel, from hardware counters in percent of peak: compute,
// memory, or latency where neither roof is near.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_KERNEL_LIMITS_H_
#define SOLWARD_COORDINATOR_WORKFLOW_KERNEL_LIMITS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/workflow/classify_draft.h"
#include "coordinator/workflow/metric_view.h"

namespace solward::workflow {

struct Limit {
  v1::BottleneckClass first = v1::BOTTLENECK_CLASS_UNSPECIFIED;
  // Within limit_margin_percent of the first; UNSPECIFIED otherwise.
  v1::BottleneckClass second = v1::BOTTLENECK_CLASS_UNSPECIFIED;
};

// The larger of the two throughputs (percent) limits a kernel if it reaches the
// threshold; below it the kernel is latency-bound.
Limit LimitOf(double compute, double memory, const ClassificationParameters& parameters);

// A kernel that counters rate.
struct RatedKernel {
  CountedKernel counters;
  Limit limit;
  const Metric* utilization = nullptr;  // the larger throughput
  const Metric* stall = nullptr;        // dominating one, when latency-bound
};

// Every counted kernel with both throughputs; communication kernels left out.
std::vector<RatedKernel> RateKernels(const std::vector<CountedKernel>& counted,
                                     const ClassifyDraft& draft);

// Kernels of one limit together.
struct LimitGroup {
  v1::BottleneckClass limit = v1::BOTTLENECK_CLASS_UNSPECIFIED;
  const Metric* time_share = nullptr;   // of kernel time
  const Metric* share = nullptr;        // of the window or step; of kernel time without timeline
  const Metric* recoverable = nullptr;  // above the kernels' roofs
  std::vector<const Metric*> evidence;  // of its longest kernel
};

// Kernel time by limit.
struct KernelTimeRating {
  std::vector<LimitGroup> groups;              // largest share of kernel time first
  const Metric* recoverable = nullptr;         // of all groups
  const Metric* unrated_time_share = nullptr;  // nullptr: nothing is rated
  std::vector<std::string> unrated;            // names, longest first
  std::vector<v1::KernelLimit> limits;         // largest share of kernel time first

  bool any() const { return !groups.empty(); }
  // Share of kernel time in percent that no counters rate.
  double UnratedPercent() const;
};

// Kernels of a timeline, by the counters of kernels of the same name. `kernel_share`
// is the lane's, of the window or of the unprofiled step.
absl::StatusOr<KernelTimeRating> RateTimeline(const LaneView& lane, const Metric& kernel_share,
                                              const std::vector<RatedKernel>& rated,
                                              ClassifyDraft& draft);

// Counters only: the kernels of the device and rank with the most profiled time.
absl::StatusOr<KernelTimeRating> RateCounted(const std::vector<CountedKernel>& counted,
                                             const std::vector<RatedKernel>& rated,
                                             ClassifyDraft& draft);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_KERNEL_LIMITS_H_
