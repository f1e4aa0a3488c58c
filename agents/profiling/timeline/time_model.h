// The time model: shares of a GPU's window, disjoint and summing to its length,
// with idle attributed gap by gap from the CPU side (docs/time-model.md).
#ifndef SOLWARD_AGENTS_PROFILING_TIMELINE_TIME_MODEL_H_
#define SOLWARD_AGENTS_PROFILING_TIMELINE_TIME_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/profiling/timeline/timeline.h"
#include "solward/v1/delegation.pb.h"

namespace solward::timeline {

// Durations in ns. kernel + exposed_communication + exposed_transfer + idle_* =
// window, exactly.
struct TimeParts {
  int64_t window = 0;
  int64_t kernel = 0;                 // compute kernels, device-to-device copies, memsets
  int64_t exposed_communication = 0;
  int64_t exposed_transfer = 0;
  int64_t idle_queued = 0;
  int64_t idle_host = 0;
  int64_t idle_sync = 0;
  int64_t idle_launch = 0;
  // Not disjoint from the above:
  int64_t communication = 0;          // union of collective kernels, overlapped or not
  int64_t transfer = 0;               // union of host-device copies, overlapped or not
  int64_t host_stretches_1ms = 0;     // host stretches of 1 ms and more within idle

  int64_t busy() const { return kernel + exposed_communication + exposed_transfer; }
  int64_t idle() const { return idle_queued + idle_host + idle_sync + idle_launch; }
};

struct StepParts {
  uint32_t index = 0;
  int64_t start_ns = 0;
  TimeParts parts;
  uint64_t kernels = 0;
};

struct LaneShares {
  uint32_t process = 0;               // index into Timeline::processes
  uint32_t lane = 0;                  // index into Process::lanes
  int64_t window_start_ns = 0;
  int64_t window_end_ns = 0;
  TimeParts whole;
  std::vector<StepParts> steps;       // empty: no step marker
  std::string step_marker;            // "nvtx:step", "ProfilerStep", ""
  int64_t lead_in_ns = 0;             // region start to first GPU activity
  int64_t tail_ns = 0;                // last GPU activity to region end
  uint64_t kernels = 0;               // compute and collective kernels in the window
  uint64_t launch_calls = 0;          // kernel and graph launch calls behind them
  uint64_t graph_launches = 0;
  uint64_t graph_operations = 0;
  uint64_t synchronizations = 0;      // synchronizing calls of launching threads in the region
  int64_t synchronization_ns = 0;     // CPU time in them
};

struct TimeModelOptions {
  // A stretch without any CUDA call at least this long is host work.
  int64_t host_stretch_ns = 200'000;
  int64_t long_host_stretch_ns = 1'000'000;
};

// Shares of every (process, device) with GPU data. FAILED_PRECONDITION when
// the timeline has none; NOT_FOUND when the region's marker is not in it (the
// message lists the markers that are).
absl::StatusOr<std::vector<LaneShares>> ComputeShares(const Timeline& timeline,
                                                      const v1::Region& region,
                                                      const v1::Constraints& constraints,
                                                      const TimeModelOptions& options = {});

}  // namespace solward::timeline

#endif  // SOLWARD_AGENTS_PROFILING_TIMELINE_TIME_MODEL_H_
