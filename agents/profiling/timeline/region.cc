#include "agents/profiling/timeline/region.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace solward::timeline {
namespace {

constexpr absl::string_view kProfilerStep = "ProfilerStep";
constexpr size_t kMaxMarkers = 8;

bool IsAnyOf(absl::string_view word, std::initializer_list<absl::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Lower-case words of a name; everything but letters separates.
std::vector<std::string> Words(absl::string_view name) {
  std::vector<std::string> words;
  bool inside = false;
  for (char c : name) {
    if (!absl::ascii_isalpha(c)) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    words.back().push_back(absl::ascii_tolower(c));
  }
  return words;
}

// "step" names "step 3", "step_3", "step#3".
bool IsNumbered(absl::string_view name, absl::string_view stem) {
  if (!absl::ConsumePrefix(&name, stem)) return false;
  while (!name.empty() && absl::StrContains(" _#:.-", name.substr(0, 1))) name.remove_prefix(1);
  if (name.empty()) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isdigit(c); });
}

template <typename Wanted>
std::vector<CpuInterval> RangesWhere(const Ranges& ranges, const Wanted& wanted) {
  std::vector<CpuInterval> found;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!wanted(ranges.name[i])) continue;
    found.push_back({ranges.start_ns[i], ranges.end_ns[i], ranges.thread[i]});
  }
  return found;
}

// Ranges of the exact name; when there are none, of the name with a number.
std::vector<CpuInterval> NamedRanges(const NameTable& names, const Ranges& ranges,
                                     absl::string_view wanted) {
  auto exact = RangesWhere(ranges, [&](NameId id) { return names.Name(id) == wanted; });
  if (!exact.empty()) return exact;
  return RangesWhere(ranges, [&](NameId id) { return IsNumbered(names.Name(id), wanted); });
}

// Markers that may divide a process's run into steps: torch.profiler's own
// first, then the one that spans the most time.
std::vector<StepMarker> FindStepMarkers(const NameTable& names, const Ranges& ranges) {
  std::unordered_map<NameId, std::string> marker_of;
  std::map<std::string, StepMarker> markers;
  std::map<std::string, int64_t> spans;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const NameId id = ranges.name[i];
    auto [it, is_new] = marker_of.try_emplace(id);
    if (is_new) it->second = StepMarkerOf(names.Name(id));
    if (it->second.empty()) continue;
    markers[it->second].ranges.push_back({ranges.start_ns[i], ranges.end_ns[i], ranges.thread[i]});
    spans[it->second] += std::min(ranges.end_ns[i] - ranges.start_ns[i], int64_t{1} << 40);
  }
  std::vector<StepMarker> sorted;
  for (auto& [stem, marker] : markers) {
    marker.name = stem == kProfilerStep ? stem : absl::StrCat("nvtx:", stem);
    sorted.push_back(std::move(marker));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [&](const StepMarker& a, const StepMarker& b) {
    const bool a_first = a.name == kProfilerStep, b_first = b.name == kProfilerStep;
    if (a_first != b_first) return a_first;
    if (a_first) return false;
    return spans[a.name.substr(5)] > spans[b.name.substr(5)];
  });
  if (sorted.size() > kMaxMarkers) sorted.resize(kMaxMarkers);
  return sorted;
}

bool IsProfilerCall(absl::string_view name, absl::string_view what) {
  return absl::ConsumeSuffix(&name, what) && IsAnyOf(name, {"cuda", "cu", "hip"});
}

// From the return of each cudaProfilerStart to the next cudaProfilerStop; a
// missing one is the recording's own border.
std::vector<CpuInterval> ProfilerIntervals(const NameTable& names, const ApiCalls& calls) {
  std::vector<std::pair<int64_t, bool>> marks;  // time, whether it starts
  for (size_t i = 0; i < calls.size(); ++i) {
    const absl::string_view name = names.Name(calls.name[i]);
    if (IsProfilerCall(name, "ProfilerStart")) marks.emplace_back(calls.end_ns[i], true);
    if (IsProfilerCall(name, "ProfilerStop")) marks.emplace_back(calls.start_ns[i], false);
  }
  std::sort(marks.begin(), marks.end());
  std::vector<CpuInterval> intervals;
  bool open = false;
  for (const auto& [time, starts] : marks) {
    if (starts && !open) intervals.push_back({time, INT64_MAX});
    if (!starts && open) intervals.back().end_ns = time;
    if (!starts && !open && intervals.empty()) intervals.push_back({0, time});
    open = starts;
  }
  return intervals;
}

absl::Status NoMarker(const Timeline& timeline, absl::string_view wanted) {
  return MakeError(
      absl::StatusCode::kNotFound, "REGION_NOT_FOUND",
      absl::StrCat("region: expected ", wanted, " in the capture, found ",
                   DescribeMarkers(timeline), "; name one of those or leave the region out"));
}

}  // namespace

std::string StepMarkerOf(absl::string_view range_name) {
  if (range_name.size() > 200) return "";
  if (absl::StartsWith(range_name, "ProfilerStep#") || range_name == "ProfilerStep*") {
    return std::string(kProfilerStep);
  }
  std::vector<std::string> kept;
  bool is_step = false;
  for (std::string& word : Words(range_name)) {
    if (IsAnyOf(word, {"step", "iteration", "iter", "trainstep", "trainingstep"})) {
      is_step = true;
    } else if (IsAnyOf(word, {"to", "of"})) {
      continue;  // "step 80 to 90", "step 3 of 10"
    } else if (!IsAnyOf(word, {"train", "training", "global", "model", "inference", "eval",
                               "decode", "engine", "benchmark", "bench", "timed", "measured"})) {
      return "";  // a step of something else: an optimizer, a scheduler, a warm-up
    }
    kept.push_back(std::move(word));
  }
  return is_step ? absl::StrJoin(kept, " ") : "";
}

std::vector<CpuInterval> StepsOnThreads(const StepMarker& marker,
                                        const std::vector<bool>& launching) {
  auto launches = [&](const CpuInterval& r) {
    return r.thread < launching.size() && launching[r.thread];
  };
  const bool any = std::any_of(marker.ranges.begin(), marker.ranges.end(), launches);
  std::vector<CpuInterval> steps;
  for (const CpuInterval& range : marker.ranges) {
    if (any && !launches(range)) continue;
    if (!steps.empty() && range.end_ns <= steps.back().end_ns) continue;
    steps.push_back(range);
  }
  return steps;
}

std::string DescribeMarkers(const Timeline& timeline) {
  std::map<std::string, uint64_t> ranges;
  bool more = false, profiler = false;
  for (const Process& process : timeline.processes) {
    for (NameId id : process.ranges.name) {
      std::string name(timeline.names.Name(id).substr(0, 60));
      if (ranges.size() >= 10 && ranges.count(name) == 0) {
        more = true;
        continue;
      }
      ++ranges[name];
    }
    profiler |= !ProfilerIntervals(timeline.names, process.calls).empty();
  }
  std::vector<std::string> parts;
  parts.reserve(ranges.size() + 2);
  for (const auto& [name, count] : ranges) {
    parts.push_back(absl::StrCat("range \"", name, "\" (", count, ")"));
  }
  if (more) parts.push_back("further ranges");
  if (profiler || timeline.recorded_by_profiler_api) parts.push_back("cudaProfilerStart");
  return parts.empty() ? "no marker at all" : absl::StrJoin(parts, ", ");
}

absl::StatusOr<ProcessRegion> FindRegion(const Timeline& timeline, const Process& process,
                                         const v1::Region& region) {
  ProcessRegion found;
  found.skip_steps = region.skip_steps();
  found.max_steps = region.max_steps();
  const bool some_steps = found.skip_steps > 0 || found.max_steps > 0;
  switch (region.marker_case()) {
    case v1::Region::kNvtxRange: {
      StepMarker marker;
      marker.name = absl::StrCat("nvtx:", region.nvtx_range());
      marker.ranges = NamedRanges(timeline.names, process.ranges, region.nvtx_range());
      if (marker.ranges.empty()) {
        return NoMarker(timeline, absl::StrCat("the range \"", region.nvtx_range(), "\""));
      }
      found.restricted = true;
      found.markers.push_back(std::move(marker));
      return found;
    }
    case v1::Region::kCudaProfilerApi:
      if (!region.cuda_profiler_api()) break;
      found.intervals = ProfilerIntervals(timeline.names, process.calls);
      if (found.intervals.empty() && !timeline.recorded_by_profiler_api) {
        return NoMarker(timeline, "cudaProfilerStart or cudaProfilerStop");
      }
      found.by_intervals = !found.intervals.empty();
      found.restricted = found.by_intervals;
      break;
    default:
      break;
  }
  found.markers = FindStepMarkers(timeline.names, process.ranges);
  const bool steps_wanted =
      region.marker_case() == v1::Region::kProfilerStep && region.profiler_step();
  if (steps_wanted || some_steps) {
    if (found.markers.empty()) return NoMarker(timeline, "profiler steps or ranges named \"step\"");
    found.restricted = true;
    found.by_intervals &= !steps_wanted && !some_steps;
  }
  return found;
}

}  // namespace solward::timeline
