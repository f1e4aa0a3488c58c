// Computes measured metrics again from what their provenance cites: the rows,
// the column, the aggregation. Nothing of the extraction is used, only the
// readers and, for parts of the time model, the model itself.
#ifndef SOLWARD_AGENTS_PROFILING_RECOMPUTE_H_
#define SOLWARD_AGENTS_PROFILING_RECOMPUTE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/timeline/time_model.h"
#include "agents/profiling/timeline/timeline.h"
#include "solward/v1/metric.pb.h"

namespace solward::profiling {

// All give NOT_FOUND when the capture does not hold what the provenance cites
// and INVALID_ARGUMENT when it cites what there is no rule for.

// Values combined as the aggregation says.
absl::StatusOr<double> Aggregate(const std::vector<double>& values, v1::Aggregation aggregation);

absl::StatusOr<double> RecomputeCounter(const readers::CounterReport& report,
                                        const v1::Measured& measured);
absl::StatusOr<double> RecomputeSample(const readers::SmiReport& report,
                                       const v1::Measured& measured);

// Keeps the shares of each region it was asked for. Not thread-safe.
class TimelineRecomputer {
 public:
  // The timeline must outlive it.
  explicit TimelineRecomputer(const timeline::Timeline& timeline) : timeline_(timeline) {}
  absl::StatusOr<double> Recompute(const v1::Measured& measured);

 private:
  absl::StatusOr<double> FromModel(const v1::Measured& measured, const timeline::Process& process,
                                   int32_t device);
  absl::StatusOr<const timeline::LaneShares*> SharesOf(const v1::Measured& measured,
                                                       const timeline::Process& process,
                                                       int32_t device);

  const timeline::Timeline& timeline_;
  std::map<std::string, absl::StatusOr<std::vector<timeline::LaneShares>>> shares_;
};

// Whether two computations of one number agree: 1e-9 relative.
bool Agree(double a, double b);

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_RECOMPUTE_H_
