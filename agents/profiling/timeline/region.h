// Finds the part of a process's run that counts and the steps in it, on the CPU
// side: in time ranges that contain the calls which launch GPU operations.
#ifndef SOLWARD_AGENTS_PROFILING_TIMELINE_REGION_H_
#define SOLWARD_AGENTS_PROFILING_TIMELINE_REGION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/profiling/timeline/timeline.h"
#include "solward/v1/delegation.pb.h"

namespace solward::timeline {

struct CpuInterval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t thread = kNone;  // index into Process::threads
};

// Ranges of one marker in one process, by start.
struct StepMarker {
  std::string name;  // "ProfilerStep", "nvtx:step"
  std::vector<CpuInterval> ranges;
};

struct ProcessRegion {
  // Only activity launched in the region counts; false: everything recorded.
  bool restricted = false;
  // Restricted to `intervals` instead of to steps.
  bool by_intervals = false;
  std::vector<CpuInterval> intervals;
  // What may divide the region into steps, best first; empty: no steps.
  std::vector<StepMarker> markers;
  uint32_t skip_steps = 0;
  uint32_t max_steps = 0;  // 0: all
};

// NOT_FOUND when the process lacks the region's marker.
absl::StatusOr<ProcessRegion> FindRegion(const Timeline& timeline, const Process& process,
                                         const v1::Region& region);

// Marker a range name stands for: "ProfilerStep#3" -> "ProfilerStep",
// "train_step 17" -> "train step", "Optimizer.step#SGD.step" -> "".
std::string StepMarkerOf(absl::string_view range_name);

// The marker's ranges on threads that launch work (all of them when none is
// there), without those inside another one of the same marker.
std::vector<CpuInterval> StepsOnThreads(const StepMarker& marker,
                                        const std::vector<bool>& launching);

// Names of the timeline's markers, for messages: at most ten range names, and
// whether cudaProfilerStart or Stop was seen.
std::string DescribeMarkers(const Timeline& timeline);

}  // namespace solward::timeline

#endif  // SOLWARD_AGENTS_PROFILING_TIMELINE_REGION_H_
