#include "agents/profiling/recompute.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::profiling {

absl::StatusOr<double> Aggregate(const std::vector<double>& values, v1::Aggregation aggregation) {
  if (aggregation == v1::AGGREGATION_COUNT) return static_cast<double>(values.size());
  if (values.empty()) {
    return MakeError(absl::StatusCode::kNotFound, "ROWS_NOT_FOUND",
                     "no row of the capture is selected by the provenance");
  }
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  switch (aggregation) {
    case v1::AGGREGATION_SINGLE:
      if (values.size() == 1) return values.front();
      return MakeError(absl::StatusCode::kNotFound, "ROWS_NOT_FOUND",
                       absl::StrCat("expected one row, found ", values.size()));
    case v1::AGGREGATION_SUM:
      return sum;
    case v1::AGGREGATION_MEAN:
      return sum / static_cast<double>(values.size());
    case v1::AGGREGATION_MIN:
      return *std::min_element(values.begin(), values.end());
    case v1::AGGREGATION_MAX:
      return *std::max_element(values.begin(), values.end());
    case v1::AGGREGATION_MEDIAN: {
      std::vector<double> sorted = values;
      std::sort(sorted.begin(), sorted.end());
      const size_t middle = sorted.size() / 2;
      return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
    default:
      return MakeError(
          absl::StatusCode::kInvalidArgument, "PROVENANCE_INVALID",
          absl::StrCat("no rule for ", v1::Aggregation_Name(aggregation), " over these rows"));
  }
}

bool Agree(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

}  // namespace solward::profiling
