#include "agents/profiling/timeline/window.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace solward::timeline {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// GPU activity of one CPU range: what its calls launched.
struct Activity {
  uint32_t index = 0;  // of the range, by start
  int64_t first_ns = kNever;
  int64_t last_ns = -1;

  bool any() const { return last_ns >= 0; }
  void Add(int64_t start_ns, int64_t end_ns) {
    first_ns = std::min(first_ns, start_ns);
    last_ns = std::max(last_ns, end_ns);
  }
};

// The range that contains the call, for calls in almost ascending order.
class RangeFinder {
 public:
  explicit RangeFinder(const std::vector<CpuInterval>& ranges) : ranges_(ranges) {}

  // Index of the last range that starts at or before the time and has not
  // ended; kNone when there is none.
  uint32_t Find(int64_t time_ns) {
    if (next_ > ranges_.size() || (next_ > 0 && ranges_[next_ - 1].start_ns > time_ns) ||
        (next_ < ranges_.size() && ranges_[next_].start_ns <= time_ns)) {
      next_ =
          std::partition_point(ranges_.begin(), ranges_.end(),
                               [time_ns](const CpuInterval& r) { return r.start_ns <= time_ns; }) -
          ranges_.begin();
    }
    if (next_ == 0 || ranges_[next_ - 1].end_ns < time_ns) return kNone;
    return static_cast<uint32_t>(next_ - 1);
  }

 private:
  const std::vector<CpuInterval>& ranges_;
  size_t next_ = 0;  // first range that starts after the last time asked for
};

std::vector<Activity> ActivityOf(const std::vector<CpuInterval>& ranges, const ApiCalls& calls,
                                 const GpuOps& ops) {
  std::vector<Activity> activities(ranges.size());
  for (uint32_t i = 0; i < activities.size(); ++i) activities[i].index = i;
  RangeFinder finder(ranges);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.call[i] == kNone) continue;
    const uint32_t range = finder.Find(calls.start_ns[ops.call[i]]);
    if (range != kNone) activities[range].Add(ops.start_ns[i], ops.end_ns[i]);
  }
  return activities;
}

// Steps of a lane: the activity of the marker's ranges that have any, by range.
struct Steps {
  std::string marker;
  std::vector<CpuInterval> ranges;
  std::vector<Activity> active;    // those kept by skip and max
  int64_t next_first_ns = kNever;  // first activity of the first step after those kept
};

Steps FindSteps(const Process& process, const GpuOps& ops, const ProcessRegion& region) {
  Steps steps;
  const std::vector<bool> launching = ThreadsBehind(process, ops, 0, kNever);
  for (const StepMarker& marker : region.markers) {
    std::vector<CpuInterval> ranges = StepsOnThreads(marker, launching);
    if (region.by_intervals) {
      RangeFinder intervals(region.intervals);
      std::erase_if(ranges,
                    [&](const CpuInterval& r) { return intervals.Find(r.start_ns) == kNone; });
    }
    std::vector<Activity> all = ActivityOf(ranges, process.calls, ops);
    if (std::none_of(all.begin(), all.end(), [](const Activity& a) { return a.any(); })) continue;
    steps.marker = marker.name;
    steps.ranges = std::move(ranges);
    const uint64_t end = region.max_steps == 0 ? std::numeric_limits<uint64_t>::max()
                                               : uint64_t{region.skip_steps} + region.max_steps;
    for (const Activity& activity : all) {
      if (!activity.any() || activity.index < region.skip_steps) continue;
      if (activity.index < end) {
        steps.active.push_back(activity);
      } else if (steps.next_first_ns == kNever) {
        steps.next_first_ns = activity.first_ns;
      }
    }
    break;
  }
  return steps;
}

// Divides the window at the first activity of each step. The last step ends
// with its own last activity.
void DivideIntoBuckets(const Steps& steps, Window* window) {
  auto add = [&](int64_t end_ns, uint32_t step) {
    const int64_t start =
        window->buckets.empty() ? window->start_ns : window->buckets.back().end_ns;
    if (step == kNone && end_ns <= start) return;
    window->buckets.push_back({.start_ns = start,
                               .end_ns = std::max(start, std::min(end_ns, window->end_ns)),
                               .step = step,
                               .parts = {},
                               .kernels = 0});
  };
  if (!steps.active.empty()) {
    window->step_marker = steps.marker;
    add(steps.active.front().first_ns, kNone);
    int64_t last_ns = -1;
    for (const Activity& a : steps.active) last_ns = std::max(last_ns, a.last_ns);
    for (size_t i = 0; i < steps.active.size(); ++i) {
      const bool is_last = i + 1 == steps.active.size();
      const int64_t end = is_last ? (steps.next_first_ns == kNever ? last_ns : window->end_ns)
                                  : steps.active[i + 1].first_ns;
      add(end, steps.active[i].index);
    }
  }
  add(window->end_ns, kNone);
  if (window->buckets.empty()) {  // only operations without a duration
    window->buckets.push_back({.start_ns = window->start_ns,
                               .end_ns = window->end_ns,
                               .step = kNone,
                               .parts = {},
                               .kernels = 0});
  }
}

}  // namespace

std::vector<bool> ThreadsBehind(const Process& process, const GpuOps& ops, int64_t from_ns,
                                int64_t to_ns) {
  std::vector<bool> threads(process.threads.size(), false);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.start_ns[i] < from_ns || ops.start_ns[i] > to_ns || ops.call[i] == kNone) continue;
    threads[process.calls.thread[ops.call[i]]] = true;
  }
  return threads;
}

CpuInterval RecordedSpan(const Process& process) {
  CpuInterval span{.start_ns = kNever, .end_ns = 0, .thread = kNone};
  auto add = [&](const std::vector<int64_t>& starts, const std::vector<int64_t>& ends) {
    for (int64_t t : starts) span.start_ns = std::min(span.start_ns, t);
    for (int64_t t : ends) span.end_ns = std::max(span.end_ns, t);
  };
  add(process.calls.start_ns, process.calls.end_ns);
  add(process.ranges.start_ns, process.ranges.end_ns);
  for (const GpuLane& lane : process.lanes) add(lane.ops.start_ns, lane.ops.end_ns);
  return span;
}

bool FindWindow(const Process& process, const GpuOps& ops, const ProcessRegion& region,
                const CpuInterval& recorded, Window* window) {
  window->region_start_ns = recorded.start_ns;
  window->region_end_ns = recorded.end_ns;
  const Steps steps = FindSteps(process, ops, region);
  Activity whole;
  if (!region.restricted) {
    for (size_t i = 0; i < ops.size(); ++i) whole.Add(ops.start_ns[i], ops.end_ns[i]);
  } else if (region.by_intervals) {
    for (const Activity& a : ActivityOf(region.intervals, process.calls, ops)) {
      if (a.any()) whole.Add(a.first_ns, a.last_ns);
    }
    window->region_start_ns = region.intervals.front().start_ns;
    window->region_end_ns = std::min(window->region_end_ns, region.intervals.back().end_ns);
  } else {
    for (const Activity& a : steps.active) whole.Add(a.first_ns, a.last_ns);
    // A step lasts to the first activity of the next one, kept or not; less one
    // ns, so that this activity itself starts outside the window.
    if (steps.next_first_ns != kNever && whole.any()) {
      whole.last_ns = std::max(whole.first_ns, steps.next_first_ns - 1);
    }
    if (!steps.active.empty()) {
      window->region_start_ns = steps.ranges[steps.active.front().index].start_ns;
      window->region_end_ns = steps.ranges[steps.active.back().index].end_ns;
    }
  }
  if (!whole.any()) return false;
  window->start_ns = whole.first_ns;
  window->end_ns = whole.last_ns;
  DivideIntoBuckets(steps, window);
  return true;
}

}  // namespace solward::timeline
