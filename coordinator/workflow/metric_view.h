// What Measure and Classify both look up in a set of metrics: where a number
// came from, the numbers of one timeline, the numbers of one counted kernel.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_METRIC_VIEW_H_
#define SOLWARD_COORDINATOR_WORKFLOW_METRIC_VIEW_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/metric.h"
#include "solward/v1/analysis.pb.h"

namespace solward::workflow {

// Provenance of a measured metric, or of the first measured one behind a
// derived metric; nullptr when nothing behind it was measured.
const v1::Measured* MeasuredSource(const MetricSet& metrics, const Metric& metric);

// Place of a tool in the catalogue's order of precedence, 0 first; unknown
// tools come last.
size_t ToolRank(const MetricCatalogue& catalogue, absl::string_view tool);

// Whether two captures may speak of the same GPU of the same process: devices
// equal, and ranks equal or one of them unknown (-1).
bool SameLane(int device_a, int rank_a, int device_b, int rank_b);

// The metrics of one timeline (one GPU seen by one process in one capture).
class LaneView {
 public:
  // Both must outlive the view.
  LaneView(const MetricSet& metrics, const v1::Timeline& timeline);

  // The lane's metric of this id and kind of scope that speaks about no single
  // call or kernel; nullptr when there is none.
  const Metric* Find(absl::string_view id, v1::ScopeKind kind) const;
  // Per step where the timeline has steps, else of the whole window.
  const Metric* Time(absl::string_view id) const;

  bool HasSteps() const;
  v1::Scope Scope(v1::ScopeKind kind) const;
  // Scope of the lane's times: STEP with steps, else RUN.
  v1::Scope TimeScope() const;
  const v1::Timeline& timeline() const { return *timeline_; }
  int device() const { return timeline_->device(); }
  int rank() const { return timeline_->rank(); }

 private:
  const v1::Timeline* timeline_;
  std::vector<const Metric*> metrics_;
};

// A step time of the run without a profiler that holds for this lane, measured
// before given; nullptr when none is known.
const Metric* UnprofiledStepTime(const MetricSet& metrics, const MetricCatalogue& catalogue,
                                 int device, int rank);

// One kernel function that hardware counters were collected for, over all
// captures that did.
struct CountedKernel {
  std::string name;         // as the preferred capture prints it
  std::string normal_name;  // NormalKernelName
  int device = -1;
  int rank = -1;
  int summary = -1;     // index of its first summary in the measurement
  double total_ns = 0;  // over the profiled launches, for ordering only
  v1::KernelCategory category = v1::KERNEL_CATEGORY_UNSPECIFIED;
  std::vector<const Metric*> metrics;  // preferred tool first

  const Metric* Find(absl::string_view id) const;
  v1::Scope Scope() const;
};

// Kernels whose summary does not come from a timeline, longest total time first.
std::vector<CountedKernel> CountedKernels(
    const MetricSet& metrics, const google::protobuf::RepeatedPtrField<v1::KernelSummary>& kernels,
    const google::protobuf::RepeatedPtrField<v1::Timeline>& timelines,
    const MetricCatalogue& catalogue);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_METRIC_VIEW_H_
