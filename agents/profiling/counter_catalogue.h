// Which hardware counters give which catalogue metric.
#ifndef SOLWARD_AGENTS_PROFILING_COUNTER_CATALOGUE_H_
#define SOLWARD_AGENTS_PROFILING_COUNTER_CATALOGUE_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace solward::profiling {

struct CounterSource {
  absl::string_view metric_id;
  // Raw names of ncu: the first that a kernel has gives the metric.
  std::vector<absl::string_view> raw_names;
  // Section of ncu that collects it, for messages.
  absl::string_view section;
  // The largest of those that are there instead of the first (pipes of chips
  // that count each kind of tensor instruction by itself).
  bool largest = false;
};

const std::vector<CounterSource>& CounterSources();

// nullptr when the metric is not read from a counter as it stands.
const CounterSource* FindCounterSource(absl::string_view metric_id);

// Parts of the raw names of warp stalls: prefix, reason, suffix.
inline constexpr absl::string_view kStallPrefix = "smsp__average_warps_issue_stalled_";
inline constexpr absl::string_view kStallSuffix = "_per_issue_active.ratio";

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_COUNTER_CATALOGUE_H_
