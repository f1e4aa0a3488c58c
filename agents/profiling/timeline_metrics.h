// A timeline (nsys, torch.profiler) as metrics: per GPU and process the times
// of the time model in RUN scope and, with steps, in STEP scope; shares; counts;
// copies through pageable memory; kernels.
#ifndef SOLWARD_AGENTS_PROFILING_TIMELINE_METRICS_H_
#define SOLWARD_AGENTS_PROFILING_TIMELINE_METRICS_H_

#include <string>

#include "absl/status/status.h"
#include "agents/profiling/result_builder.h"
#include "agents/profiling/timeline/timeline.h"
#include "solward/v1/delegation.pb.h"

namespace solward::profiling {

struct TimelineOptions {
  std::string artifact_id;
  v1::Region region;
  v1::Constraints constraints;
};

// Errors of ComputeShares (no GPU data, region or device not found) pass through.
absl::Status AddTimelineMetrics(const timeline::Timeline& timeline, const TimelineOptions& options,
                                ResultBuilder* builder);

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_TIMELINE_METRICS_H_
