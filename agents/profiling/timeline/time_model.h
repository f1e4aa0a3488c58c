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
// window, exactly (checked; a difference is INTERNAL).
struct TimeParts {
  int64_t window = 0;
  int64_t kernel = 0;  // compute kernels, device-to-device copies, memsets
  int64_t exposed_communication = 0;
  int64_t exposed_transfer = 0;
  int64_t idle_queued = 0;
  int64_t idle_host = 0;
  int64_t idle_sync = 0;
  int64_t idle_launch = 0;
  // Gaps ended by an operation whose launching call the capture does not hold.
  int64_t idle_unattributed = 0;
  // Not disjoint from the above:
  int64_t communication = 0;       // union of collective kernels, overlapped or not
  int64_t transfer = 0;            // union of host-device copies, overlapped or not
  int64_t host_stretches_1ms = 0;  // host stretches of 1 ms and more within idle

  int64_t busy() const { return kernel + exposed_communication + exposed_transfer; }
  int64_t idle() const {
    return idle_queued + idle_host + idle_sync + idle_launch + idle_unattributed;
  }
};

struct StepParts {
  uint32_t index = 0;
  int64_t start_ns = 0;
  TimeParts parts;
  uint64_t kernels = 0;
};

struct LaneShares {
  uint32_t process = 0;  // index into Timeline::processes
  uint32_t lane = 0;     // index into Process::lanes
  int64_t window_start_ns = 0;
  int64_t window_end_ns = 0;
  TimeParts whole;
  // Sum over `steps`, what per-step figures are made from. Less than `whole`
  // only when no region was asked for and GPU work lies before the first step
  // or after the last one.
  TimeParts in_steps;
  std::vector<StepParts> steps;  // empty: no step marker
  std::string step_marker;       // "nvtx:step", "ProfilerStep", ""
  int64_t lead_in_ns = 0;        // region start to first GPU activity
  int64_t tail_ns = 0;           // last GPU activity to region end
  // Counts are of rows that start in [window_start_ns, window_end_ns].
  uint64_t kernels = 0;            // compute and collective kernels
  uint64_t launch_calls = 0;       // distinct calls behind the kernels and graph operations
  uint64_t graph_launches = 0;     // distinct calls behind the graph operations
  uint64_t graph_operations = 0;   // GPU operations that a graph launched
  uint64_t synchronizations = 0;   // synchronizing calls of launching threads
  int64_t synchronization_ns = 0;  // CPU time in them
  // Indices into Process::threads: threads that launched one of the lane's
  // operations of the window. Ascending.
  std::vector<uint32_t> launching_threads;
};

struct TimeModelOptions {
  // A stretch without any CUDA call at least this long is host work.
  int64_t host_stretch_ns = 200'000;
  int64_t long_host_stretch_ns = 1'000'000;
};

// Shares of every (process, device) with GPU activity in the region; a process
// without the region's marker is left out. Of the constraints, devices and
// ranks count: shares speak of a GPU, never of some of its kernels.
// FAILED_PRECONDITION when there is no GPU activity in the timeline or in the
// region; NOT_FOUND when the region's marker, a device or a rank is not in it
// (the message lists those that are). Takes O(n log n) at most.
absl::StatusOr<std::vector<LaneShares>> ComputeShares(const Timeline& timeline,
                                                      const v1::Region& region,
                                                      const v1::Constraints& constraints,
                                                      const TimeModelOptions& options = {});

}  // namespace solward::timeline

#endif  // SOLWARD_AGENTS_PROFILING_TIMELINE_TIME_MODEL_H_
