// Where a lane's window lies and how steps divide it.
#ifndef SOLWARD_AGENTS_PROFILING_TIMELINE_WINDOW_H_
#define SOLWARD_AGENTS_PROFILING_TIMELINE_WINDOW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agents/profiling/timeline/region.h"
#include "agents/profiling/timeline/time_model.h"
#include "agents/profiling/timeline/timeline.h"

namespace solward::timeline {

// A stretch of the window with its own sums; buckets follow one another without
// a hole. `step` is kNone outside the steps.
struct Bucket {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t step = kNone;
  TimeParts parts;
  uint64_t kernels = 0;
};

struct Window {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t region_start_ns = 0;
  int64_t region_end_ns = 0;
  std::string step_marker;
  std::vector<Bucket> buckets;
};

// First and last event of the process on any of its tracks.
CpuInterval RecordedSpan(const Process& process);

// False when the region holds no GPU activity of the lane.
bool FindWindow(const Process& process, const GpuOps& ops, const ProcessRegion& region,
                const CpuInterval& recorded, Window* window);

// By index into Process::threads: whether the thread launched one of the
// operations that start in [from_ns, to_ns].
std::vector<bool> ThreadsBehind(const Process& process, const GpuOps& ops, int64_t from_ns,
                                int64_t to_ns);

}  // namespace solward::timeline

#endif  // SOLWARD_AGENTS_PROFILING_TIMELINE_WINDOW_H_
