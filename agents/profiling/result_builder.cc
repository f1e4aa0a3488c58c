#include "agents/profiling/result_builder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace solward::profiling {

absl::StatusOr<const Metric*> ResultBuilder::Measure(absl::string_view id, double value,
                                                     v1::Scope scope, v1::Measured provenance) {
  ASSIGN_OR_RETURN(Metric metric,
                   Metric::Measure(catalogue_, id, value, std::move(scope), std::move(provenance)));
  return &metrics_.Add(std::move(metric));
}

absl::StatusOr<const Metric*> ResultBuilder::Derive(
    absl::string_view formula_id, v1::Scope scope,
    const std::vector<std::pair<std::string, const Metric*>>& inputs) {
  ASSIGN_OR_RETURN(Metric metric, Metric::Derive(catalogue_, formula_id, std::move(scope), inputs));
  return &metrics_.Add(std::move(metric));
}

void ResultBuilder::AddUnmeasured(absl::string_view id, const v1::Scope& scope,
                                  v1::UnmeasuredReason reason, absl::string_view detail,
                                  absl::string_view remedy) {
  for (const v1::UnmeasuredMetric& known : result_.unmeasured()) {
    if (known.id() == id && known.reason() == reason && SameScope(known.scope(), scope)) return;
  }
  v1::UnmeasuredMetric* unmeasured = result_.add_unmeasured();
  unmeasured->set_id(std::string(id));
  *unmeasured->mutable_scope() = scope;
  unmeasured->set_reason(reason);
  unmeasured->set_detail(std::string(detail));
  unmeasured->set_remedy(std::string(remedy));
}

void ResultBuilder::AddStatistics(const std::vector<v1::ParseStatistic>& statistics,
                                  const std::string& artifact_id) {
  for (const v1::ParseStatistic& statistic : statistics) {
    v1::ParseStatistic* added = result_.add_parse_statistics();
    *added = statistic;
    added->set_artifact_id(artifact_id);
  }
}

void ResultBuilder::AddGpus(const std::vector<v1::Gpu>& gpus, const std::string& artifact_id) {
  for (const v1::Gpu& gpu : gpus) {
    v1::Gpu* added = result_.mutable_environment()->add_gpus();
    *added = gpu;
    added->set_artifact_id(artifact_id);
  }
}

void ResultBuilder::AddTool(const std::string& tool, const std::string& version) {
  if (!tools_.emplace(tool, version).second) return;
  v1::ToolVersion* added = result_.mutable_environment()->add_tools();
  added->set_tool(tool);
  added->set_version(version);
}

v1::DelegationResult ResultBuilder::Finish() && {
  result_.mutable_metrics()->Reserve(static_cast<int>(metrics_.size()));
  for (const Metric& metric : metrics_.metrics()) *result_.add_metrics() = metric.proto();
  return std::move(result_);
}

void SetRanges(std::vector<int64_t> ids, v1::RowSelection* rows) {
  std::sort(ids.begin(), ids.end());
  v1::RowRange* range = nullptr;
  for (const int64_t id : ids) {
    if (range != nullptr && (id == range->last() || id == range->last() + 1)) {
      range->set_last(id);
      continue;
    }
    range = rows->add_ranges();
    range->set_first(id);
    range->set_last(id);
  }
}

void AddCondition(absl::string_view column, absl::string_view value, v1::RowSelection* rows) {
  v1::RowCondition* condition = rows->add_conditions();
  condition->set_column(std::string(column));
  condition->set_value(std::string(value));
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void SetSpread(const std::vector<double>& values, v1::Measured* measured) {
  if (values.size() < 2) return;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  v1::Spread* spread = measured->mutable_spread();
  spread->set_min(*smallest);
  spread->set_max(*largest);
  spread->set_stddev(std::sqrt(squares / static_cast<double>(values.size() - 1)));
}

std::string RegionName(const v1::Region& region) {
  switch (region.marker_case()) {
    case v1::Region::kNvtxRange:
      return absl::StrCat("nvtx:", region.nvtx_range());
    case v1::Region::kProfilerStep:
      return region.profiler_step() ? "profiler_step" : "";
    case v1::Region::kCudaProfilerApi:
      return region.cuda_profiler_api() ? "cuda_profiler_api" : "";
    default:
      return "";
  }
}

void AddRegionConditions(const v1::Region& region, v1::RowSelection* rows) {
  const std::string name = RegionName(region);
  if (!name.empty()) AddCondition("region", name, rows);
  if (region.skip_steps() > 0) AddCondition("skip_steps", absl::StrCat(region.skip_steps()), rows);
  if (region.max_steps() > 0) AddCondition("max_steps", absl::StrCat(region.max_steps()), rows);
}

absl::StatusOr<v1::Region> RegionOfConditions(const v1::RowSelection& rows) {
  v1::Region region;
  for (const v1::RowCondition& condition : rows.conditions()) {
    uint32_t steps = 0;
    absl::string_view value = condition.value();
    bool valid = true;
    if (condition.column() == "region") {
      if (absl::ConsumePrefix(&value, "nvtx:")) {
        region.set_nvtx_range(std::string(value));
      } else if (value == "profiler_step") {
        region.set_profiler_step(true);
      } else if (value == "cuda_profiler_api") {
        region.set_cuda_profiler_api(true);
      } else {
        valid = false;
      }
    } else if (condition.column() == "skip_steps") {
      valid = absl::SimpleAtoi(value, &steps);
      region.set_skip_steps(steps);
    } else if (condition.column() == "max_steps") {
      valid = absl::SimpleAtoi(value, &steps);
      region.set_max_steps(steps);
    }
    if (!valid) {
      return MakeError(absl::StatusCode::kInvalidArgument, "PROVENANCE_INVALID",
                       absl::StrCat("condition ", condition.column(), "=", condition.value(),
                                    ": no such region"));
    }
  }
  return region;
}

}  // namespace solward::profiling
