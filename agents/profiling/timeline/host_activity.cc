#include "agents/profiling/timeline/host_activity.h"

#include <algorithm>

namespace solward::timeline {

HostActivity::HostActivity(const ApiCalls& calls, const TimeModelOptions& options)
    : calls_(calls), options_(options) {
  const size_t count = calls.thread_begin.empty() ? 0 : calls.thread_begin.size() - 1;
  threads_.resize(count);
  for (size_t t = 0; t < count; ++t) {
    Thread& thread = threads_[t];
    // Calls nest (a runtime call makes driver calls), so what counts is the
    // latest end so far. The capture's clock starts at 0.
    int64_t covered_until = 0;
    for (uint32_t i = calls.thread_begin[t]; i < calls.thread_begin[t + 1]; ++i) {
      if (calls.start_ns[i] - covered_until >= options.host_stretch_ns) {
        thread.stretches.push_back({covered_until, calls.start_ns[i]});
      }
      covered_until = std::max(covered_until, calls.end_ns[i]);
      if (!IsSynchronizing(calls.kind[i])) continue;
      int64_t latest_end = calls.end_ns[i];
      if (!thread.synchronizations.empty()) {
        latest_end = std::max(latest_end, thread.synchronizations.back().end_ns);
      }
      thread.synchronizations.push_back({calls.start_ns[i], latest_end});
    }
  }
}

void HostActivity::AddHostStretches(const Thread& thread, int64_t from_ns, int64_t to_ns,
                                    GapParts* gap) const {
  auto it = std::partition_point(thread.stretches.begin(), thread.stretches.end(),
                                 [from_ns](const Interval& s) { return s.end_ns <= from_ns; });
  for (; it != thread.stretches.end() && it->start_ns < to_ns; ++it) {
    // Only what lies in the gap counts, also against the threshold.
    const int64_t length = std::min(it->end_ns, to_ns) - std::max(it->start_ns, from_ns);
    if (length < options_.host_stretch_ns) continue;
    gap->host += length;
    if (length >= options_.long_host_stretch_ns) gap->long_host += length;
  }
}

GapParts HostActivity::Attribute(int64_t start_ns, int64_t end_ns, uint32_t call) const {
  GapParts gap;
  const int64_t length = end_ns - start_ns;
  if (call == kNone) {
    gap.unattributed = length;
    return gap;
  }
  if (calls_.end_ns[call] <= start_ns) {
    gap.queued = length;
    return gap;
  }
  const Thread& thread = threads_[calls_.thread[call]];
  const int64_t call_start = std::min(calls_.start_ns[call], end_ns);
  AddHostStretches(thread, start_ns, call_start, &gap);
  // The last synchronizing call before this one that began in the gap or before.
  auto it =
      std::partition_point(thread.synchronizations.begin(), thread.synchronizations.end(),
                           [call_start](const Interval& s) { return s.start_ns < call_start; });
  const bool synchronized =
      it != thread.synchronizations.begin() && std::prev(it)->end_ns > start_ns;
  (synchronized ? gap.sync : gap.launch) = length - gap.host;
  return gap;
}

}  // namespace solward::timeline
