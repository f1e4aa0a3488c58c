// Rows of an ncu CSV or of nvidia-smi, as a provenance cites them.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agents/profiling/recompute.h"
#include "common/status.h"

namespace solward::profiling {
namespace {

using readers::CounterLaunch;
using readers::CounterRule;
using readers::CounterValue;

bool Selected(const v1::RowSelection& rows, int64_t id) {
  return rows.ranges().empty() ||
         std::any_of(rows.ranges().begin(), rows.ranges().end(),
                     [id](const v1::RowRange& r) { return id >= r.first() && id <= r.last(); });
}

absl::Status NotFound(const v1::Measured& measured, absl::string_view what) {
  return MakeError(absl::StatusCode::kNotFound, "ROWS_NOT_FOUND",
                   absl::StrCat(measured.raw_name(), ": ", what));
}

std::string Condition(const v1::RowSelection& rows, absl::string_view column) {
  for (const v1::RowCondition& condition : rows.conditions()) {
    if (condition.column() == column) return condition.value();
  }
  return "";
}

// The value printed under this name: a column of the raw page, "Section/Metric"
// of the details page.
const CounterValue* ValueNamed(const CounterLaunch& launch, const std::string& printed) {
  for (const auto& [key, name] : launch.printed_names) {
    if (name == printed) {
      const auto found = launch.values.find(key);
      return found == launch.values.end() ? nullptr : &found->second;
    }
  }
  const auto found = launch.values.find(printed);
  return found == launch.values.end() ? nullptr : &found->second;
}

// From the reader's base unit to the one of the cited scale; they differ where
// the tool prints no unit (kHz of a device attribute).
double UnitRatio(const v1::Measured& measured, double reader_scale) {
  const double cited = measured.unit_scale() == 0 ? 1 : measured.unit_scale();
  return cited / reader_scale;
}

absl::StatusOr<double> RecomputeRule(const readers::CounterReport& report,
                                     const v1::Measured& measured) {
  std::vector<double> values;
  for (const CounterRule& rule : report.rules) {
    if (!Selected(measured.rows(), rule.launch_id) || rule.estimated_speedup_percent < 0 ||
        rule.section != Condition(measured.rows(), "Section Name") ||
        rule.rule != Condition(measured.rows(), "Rule Name")) {
      continue;
    }
    values.push_back(rule.estimated_speedup_percent);
  }
  return Aggregate(values, measured.aggregation());
}

}  // namespace

absl::StatusOr<double> RecomputeCounter(const readers::CounterReport& report,
                                        const v1::Measured& measured) {
  if (measured.rows().table() != report.table) {
    return NotFound(measured, absl::StrCat("the capture is the ", report.table, " page, not ",
                                           measured.rows().table()));
  }
  if (measured.raw_name() == "Estimated Speedup") return RecomputeRule(report, measured);
  std::vector<double> values;
  double ratio = 0;
  for (const CounterLaunch& launch : report.launches) {
    if (!Selected(measured.rows(), launch.id)) continue;
    if (measured.aggregation() == v1::AGGREGATION_COUNT) {
      values.push_back(1);
      continue;
    }
    const CounterValue* value = ValueNamed(launch, measured.raw_name());
    if (value == nullptr) {
      return NotFound(measured, absl::StrCat("launch ", launch.id, " has no such value"));
    }
    if (values.empty()) ratio = UnitRatio(measured, value->unit_scale);
    values.push_back(value->value);
  }
  ASSIGN_OR_RETURN(const double value, Aggregate(values, measured.aggregation()));
  return measured.aggregation() == v1::AGGREGATION_COUNT ? value : value * ratio;
}

absl::StatusOr<double> RecomputeSample(const readers::SmiReport& report,
                                       const v1::Measured& measured) {
  std::vector<double> values;
  double ratio = 1;
  for (const readers::SmiSample& sample : report.samples) {
    if (!Selected(measured.rows(), sample.row)) continue;
    const auto found = sample.values.find(measured.raw_name());
    if (found == sample.values.end()) {
      return NotFound(measured, absl::StrCat("row ", sample.row, " has no such value"));
    }
    if (values.empty()) ratio = UnitRatio(measured, found->second.unit_scale);
    values.push_back(found->second.value);
  }
  ASSIGN_OR_RETURN(const double value, Aggregate(values, measured.aggregation()));
  return value * ratio;
}

}  // namespace solward::profiling
