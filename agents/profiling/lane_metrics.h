// What the parts of timeline_metrics share: one GPU as one process used it, the
// windows numbers are taken over, and where numbers go.
#ifndef SOLWARD_AGENTS_PROFILING_LANE_METRICS_H_
#define SOLWARD_AGENTS_PROFILING_LANE_METRICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/profiling/result_builder.h"
#include "agents/profiling/timeline/time_model.h"
#include "agents/profiling/timeline/timeline.h"
#include "agents/profiling/timeline_metrics.h"

namespace solward::profiling {

// Rows that start in [start_ns, end_ns]; values are over all of it (RUN) or
// divided by the steps in it (STEP).
struct CountWindow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t steps = 0;  // 0: RUN scope

  bool per_step() const { return steps > 0; }
  bool Contains(int64_t time_ns) const { return time_ns >= start_ns && time_ns <= end_ns; }
};

// One lane of a timeline on its way into the result. Not thread-safe.
class Lane {
 public:
  // All must outlive the lane. `out` collects the keys of its metrics.
  Lane(const timeline::Timeline& timeline, const timeline::LaneShares& shares,
       const TimelineOptions& options, v1::Timeline* out, ResultBuilder* builder);

  const timeline::Timeline& timeline() const { return timeline_; }
  const timeline::Process& process() const { return process_; }
  const timeline::GpuOps& ops() const { return lane_.ops; }
  const timeline::LaneShares& shares() const { return shares_; }
  const TimelineOptions& options() const { return options_; }
  int device() const { return lane_.device; }
  int rank() const { return process_.rank; }
  ResultBuilder& builder() const { return builder_; }
  v1::Timeline& out() const { return out_; }

  const CountWindow& run() const { return run_; }
  // The steps' own window; nullptr without steps.
  const CountWindow* steps() const { return shares_.steps.empty() ? nullptr : &steps_; }
  // Run window, then the steps' window when there is one.
  std::vector<CountWindow> windows() const;

  v1::Scope Scope(const CountWindow& window, absl::string_view name = "") const;

  // Provenance in the tool's own table, restricted to the lane and the window.
  v1::Measured RowsOf(absl::string_view table, absl::string_view raw_name,
                      const CountWindow& window, v1::Aggregation aggregation,
                      uint64_t samples) const;
  // Aggregation of a count or sum over the window.
  static v1::Aggregation CountOf(const CountWindow& window);
  static v1::Aggregation SumOf(const CountWindow& window);

  // A count or sum of rows: over the window, or per step in it.
  absl::StatusOr<const Metric*> AddRows(absl::string_view id, double total,
                                        const CountWindow& window, absl::string_view name,
                                        v1::Measured provenance);
  absl::StatusOr<const Metric*> Derive(
      absl::string_view formula, v1::Scope scope,
      const std::vector<std::pair<std::string, const Metric*>>& inputs);
  // Lists the metric with the lane.
  absl::StatusOr<const Metric*> Keep(absl::StatusOr<const Metric*> metric);

 private:
  const timeline::Timeline& timeline_;
  const timeline::LaneShares& shares_;
  const timeline::Process& process_;
  const timeline::GpuLane& lane_;
  const TimelineOptions& options_;
  v1::Timeline& out_;
  ResultBuilder& builder_;
  CountWindow run_, steps_;
};

// Parts of the time model by the name a provenance gives them.
struct NamedPart {
  absl::string_view raw_name;
  int64_t (*of)(const timeline::TimeParts& parts);
};
const std::vector<NamedPart>& NamedParts();

absl::Status AddLaneTimes(Lane& lane);
absl::Status AddLaneCounts(Lane& lane);
absl::Status AddLaneCopies(Lane& lane);
absl::Status AddLaneKernels(Lane& lane);

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_LANE_METRICS_H_
