// What the CPU threads of a process did between their CUDA calls, prepared so
// that the cause of one idle gap is found in logarithmic time.
#ifndef SOLWARD_AGENTS_PROFILING_TIMELINE_HOST_ACTIVITY_H_
#define SOLWARD_AGENTS_PROFILING_TIMELINE_HOST_ACTIVITY_H_

#include <cstdint>
#include <vector>

#include "agents/profiling/timeline/time_model.h"
#include "agents/profiling/timeline/timeline.h"

namespace solward::timeline {

// Parts of one idle gap; they sum to its length. ns.
struct GapParts {
  int64_t queued = 0;
  int64_t host = 0;
  int64_t sync = 0;
  int64_t launch = 0;
  int64_t unattributed = 0;
  int64_t long_host = 0;  // of `host`: stretches of long_host_stretch_ns and more
};

// Refers to `calls`, which must outlive it. Thread-compatible.
class HostActivity {
 public:
  HostActivity(const ApiCalls& calls, const TimeModelOptions& options);

  // Causes of the gap [start_ns, end_ns) that an operation launched by `call`
  // ends. `call` kNone: its cause is not known.
  GapParts Attribute(int64_t start_ns, int64_t end_ns, uint32_t call) const;

 private:
  struct Interval {
    int64_t start_ns;
    int64_t end_ns;
  };
  struct Thread {
    // Without any CUDA call for host_stretch_ns or more, each ended by a call;
    // in order, disjoint.
    std::vector<Interval> stretches;
    // Synchronizing calls by start; end_ns is the latest end up to here.
    std::vector<Interval> synchronizations;
  };

  void AddHostStretches(const Thread& thread, int64_t from_ns, int64_t to_ns, GapParts* gap) const;

  const ApiCalls& calls_;
  const TimeModelOptions options_;
  std::vector<Thread> threads_;
};

inline bool IsSynchronizing(ApiKind kind) {
  return kind == ApiKind::kSynchronize || kind == ApiKind::kBlockingCopy;
}

}  // namespace solward::timeline

#endif  // SOLWARD_AGENTS_PROFILING_TIMELINE_HOST_ACTIVITY_H_
