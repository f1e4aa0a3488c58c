#include "agents/profiling/recompute_counters.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::profiling {
namespace {

using readers::CounterLaunch;
using readers::CounterReport;
using readers::CounterValue;

bool InRanges(const v1::RowSelection& rows, int64_t id) {
  if (rows.ranges().empty()) return true;
  return std::any_of(rows.ranges().begin(), rows.ranges().end(), [id](const v1::RowRange& range) {
    return range.first() <= id && id <= range.last();
  });
}

// Value of one condition; empty when there is none of that column.
std::string Condition(const v1::RowSelection& rows, absl::string_view column) {
  for (const v1::RowCondition& condition : rows.conditions()) {
    if (condition.column() == column) return condition.value();
  }
  return "";
}

absl::Status NotFound(absl::string_view what) {
  return MakeError(absl::StatusCode::kNotFound, "ROWS_NOT_FOUND",
                   absl::StrCat("the artifact does not hold ", what));
}

// The cell a raw name speaks of: the tool's own name, or the printed
// "Section/Metric" of a details page.
const CounterValue* FindCell(const CounterLaunch& launch, const std::string& raw_name) {
  const auto direct = launch.values.find(raw_name);
  if (direct != launch.values.end()) return &direct->second;
  for (const auto& [name, printed] : launch.printed_names) {
    if (printed != raw_name) continue;
    const auto cell = launch.values.find(name);
    if (cell != launch.values.end()) return &cell->second;
  }
  return nullptr;
}

absl::StatusOr<double> RecomputeRule(const CounterReport& report, const v1::Measured& measured) {
  std::vector<double> values;
  for (const readers::CounterRule& rule : report.rules) {
    if (rule.estimated_speedup_percent < 0 || !InRanges(measured.rows(), rule.launch_id) ||
        rule.section != Condition(measured.rows(), "Section Name") ||
        rule.rule != Condition(measured.rows(), "Rule Name")) {
      continue;
    }
    values.push_back(rule.estimated_speedup_percent);
  }
  return AggregateValues(std::move(values), measured.aggregation(), measured.samples());
}

}  // namespace

absl::StatusOr<double> AggregateValues(std::vector<double> values, v1::Aggregation aggregation,
                                       uint64_t samples) {
  const double count = static_cast<double>(values.size());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  switch (aggregation) {
    case v1::AGGREGATION_COUNT: return count;
    case v1::AGGREGATION_SUM: return sum;
    case v1::AGGREGATION_COUNT_PER_STEP:
    case v1::AGGREGATION_SUM_PER_STEP:
      if (samples == 0) return NotFound("steps to divide by (samples is 0)");
      return (aggregation == v1::AGGREGATION_SUM_PER_STEP ? sum : count) /
             static_cast<double>(samples);
    default: break;
  }
  if (values.empty()) return NotFound("any row that the provenance selects");
  std::sort(values.begin(), values.end());
  switch (aggregation) {
    case v1::AGGREGATION_SINGLE:
      if (values.size() == 1) return values.front();
      return NotFound(absl::StrCat("exactly one row; it holds ", values.size()));
    case v1::AGGREGATION_MEAN: return sum / count;
    case v1::AGGREGATION_MIN: return values.front();
    case v1::AGGREGATION_MAX: return values.back();
    case v1::AGGREGATION_MEDIAN: {
      const size_t middle = values.size() / 2;
      return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    }
    default:
      return MakeError(absl::StatusCode::kUnimplemented, "AGGREGATION_NOT_OVER_ROWS",
                       absl::StrCat(v1::Aggregation_Name(aggregation), " is not over rows"));
  }
}

absl::StatusOr<double> RecomputeCounter(const CounterReport& report, const v1::Measured& measured) {
  if (measured.rows().table() != report.table) {
    return NotFound(absl::StrCat("a page \"", measured.rows().table(), "\"; it is the page \"",
                                 report.table, "\""));
  }
  if (!Condition(measured.rows(), "Rule Name").empty()) return RecomputeRule(report, measured);
  std::vector<double> values;
  for (const CounterLaunch& launch : report.launches) {
    if (!InRanges(measured.rows(), launch.id)) continue;
    if (measured.aggregation() == v1::AGGREGATION_COUNT) {
      values.push_back(1);
      continue;
    }
    const CounterValue* cell = FindCell(launch, measured.raw_name());
    if (cell == nullptr) {
      return NotFound(absl::StrCat(measured.raw_name(), " for launch ", launch.id));
    }
    // Without a printed unit the scale is the metric's own (device attributes).
    const bool scaled_by_metric = cell->unit.empty() && measured.unit_scale() != 0;
    values.push_back(cell->value * (scaled_by_metric ? measured.unit_scale() : 1));
  }
  return AggregateValues(std::move(values), measured.aggregation(), measured.samples());
}

absl::StatusOr<double> RecomputeSmi(const readers::SmiReport& report,
                                    const v1::Measured& measured) {
  const std::string device_text = Condition(measured.rows(), "device");
  int32_t device = -1;
  if (!device_text.empty() && !absl::SimpleAtoi(device_text, &device)) {
    return NotFound(absl::StrCat("a device \"", device_text, "\""));
  }
  std::vector<double> values;
  for (const readers::SmiSample& sample : report.samples) {
    if (!InRanges(measured.rows(), sample.row)) continue;
    if (!device_text.empty() && sample.device != device) continue;
    const auto field = sample.values.find(measured.raw_name());
    if (field != sample.values.end()) values.push_back(field->second.value);
  }
  return AggregateValues(std::move(values), measured.aggregation(), measured.samples());
}

}  // namespace solward::profiling
