// Collects what captures give into one delegation result. Metrics come in only
// through Measure and Derive, so each has its provenance.
#ifndef SOLWARD_AGENTS_PROFILING_RESULT_BUILDER_H_
#define SOLWARD_AGENTS_PROFILING_RESULT_BUILDER_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/metric.h"
#include "solward/v1/delegation.pb.h"

namespace solward::profiling {

// Not thread-safe.
class ResultBuilder {
 public:
  // The catalogue must outlive the builder.
  explicit ResultBuilder(const MetricCatalogue& catalogue) : catalogue_(catalogue) {}

  // Pointers stay valid while the builder lives.
  absl::StatusOr<const Metric*> Measure(absl::string_view id, double value, v1::Scope scope,
                                        v1::Measured provenance);
  absl::StatusOr<const Metric*> Derive(
      absl::string_view formula_id, v1::Scope scope,
      const std::vector<std::pair<std::string, const Metric*>>& inputs);

  void AddUnmeasured(absl::string_view id, const v1::Scope& scope, v1::UnmeasuredReason reason,
                     absl::string_view detail, absl::string_view remedy);
  void AddStatistics(const std::vector<v1::ParseStatistic>& statistics,
                     const std::string& artifact_id);
  // Devices once per capture; tools once per version.
  void AddGpus(const std::vector<v1::Gpu>& gpus, const std::string& artifact_id);
  void AddTool(const std::string& tool, const std::string& version);

  const MetricCatalogue& catalogue() const { return catalogue_; }
  const MetricSet& metrics() const { return metrics_; }
  // Everything but the metrics, which Finish puts in.
  v1::DelegationResult& result() { return result_; }
  v1::DelegationResult Finish() &&;

 private:
  const MetricCatalogue& catalogue_;
  MetricSet metrics_;
  v1::DelegationResult result_;
  std::set<std::pair<std::string, std::string>> tools_;
};

// --- provenance -------------------------------------------------------------

// Ascending row ids as inclusive ranges.
void SetRanges(std::vector<int64_t> ids, v1::RowSelection* rows);
void AddCondition(absl::string_view column, absl::string_view value, v1::RowSelection* rows);
// Smallest, largest and sample deviation; nothing below two values.
void SetSpread(const std::vector<double>& values, v1::Measured* measured);
double Mean(const std::vector<double>& values);

// "nvtx:NAME", "profiler_step", "cuda_profiler_api"; empty for no region.
std::string RegionName(const v1::Region& region);
// Adds the region, and the steps it leaves out, as conditions.
void AddRegionConditions(const v1::Region& region, v1::RowSelection* rows);
// The region such conditions speak of. INVALID_ARGUMENT when they are malformed.
absl::StatusOr<v1::Region> RegionOfConditions(const v1::RowSelection& rows);

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_RESULT_BUILDER_H_
