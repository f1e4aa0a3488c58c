#include "coordinator/service/report_queries.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/units.h"
#include "coordinator/service/list_filter.h"

namespace solward::service {
namespace {

using Metrics = google::protobuf::RepeatedPtrField<v1::Metric>;

// Metrics of a message by key, and the chain below one of them.
class MetricIndex {
 public:
  explicit MetricIndex(const Metrics& metrics) {
    for (const v1::Metric& metric : metrics) by_key_.emplace(metric.key(), &metric);
  }
  const v1::Metric* Find(const std::string& key) const {
    const auto it = by_key_.find(key);
    return it == by_key_.end() ? nullptr : it->second;
  }

  struct Link {
    const v1::Metric* metric;
    int depth;
  };
  // The metric, then its inputs depth first; each once. `seen` spans calls.
  std::vector<Link> Chain(const v1::Metric& root, std::set<std::string>& seen) const {
    std::vector<Link> chain;
    std::vector<Link> stack = {{&root, 0}};
    while (!stack.empty()) {
      const Link link = stack.back();
      stack.pop_back();
      if (!seen.insert(link.metric->key()).second) continue;
      chain.push_back(link);
      const auto& inputs = link.metric->provenance().derived().inputs();
      for (auto input = inputs.rbegin(); input != inputs.rend(); ++input) {
        const v1::Metric* found = Find(input->metric_key());
        if (found != nullptr) stack.push_back({found, link.depth + 1});
      }
    }
    return chain;
  }

 private:
  std::map<std::string, const v1::Metric*> by_key_;
};

std::string ValueText(const v1::Metric& metric, const MetricCatalogue& catalogue) {
  const MetricDefinition* definition = catalogue.Find(metric.id());
  if (definition == nullptr) return absl::StrCat(metric.value(), " ", metric.unit());
  return FormatQuantity(metric.value(), metric.unit(), definition->si, definition->decimals,
                        Language::kEnglish);
}

std::string RowsText(const v1::RowSelection& rows) {
  std::string text = absl::StrCat("table ", rows.table());
  std::vector<std::string> ranges;
  for (const v1::RowRange& range : rows.ranges()) {
    ranges.push_back(range.first() == range.last()
                         ? absl::StrCat(range.first())
                         : absl::StrCat(range.first(), "-", range.last()));
  }
  if (!ranges.empty()) absl::StrAppend(&text, ", rows ", absl::StrJoin(ranges, ","));
  for (const v1::RowCondition& condition : rows.conditions()) {
    absl::StrAppend(&text, ", ", condition.column(), "=", condition.value());
  }
  if (rows.window_start_ns() != 0 || rows.window_end_ns() != 0) {
    absl::StrAppend(&text, ", start in [", rows.window_start_ns(), ", ", rows.window_end_ns(),
                    "] ns");
  }
  return text;
}

std::string MeasuredText(const v1::Measured& measured) {
  std::string aggregation(
      absl::StripPrefix(v1::Aggregation_Name(measured.aggregation()), "AGGREGATION_"));
  absl::AsciiStrToLower(&aggregation);
  return absl::StrCat("measured by ", measured.tool(), measured.tool_version().empty() ? "" : " ",
                      measured.tool_version(), ": ", absl::StrReplaceAll(aggregation, {{"_", " "}}),
                      " of ", measured.raw_name(), " over ", measured.samples(), " (",
                      RowsText(measured.rows()), ") of artifact ", measured.artifact_id());
}

std::string DerivedText(const v1::Derived& derived, const MetricCatalogue& catalogue) {
  std::vector<std::string> inputs;
  for (const v1::DerivedInput& input : derived.inputs()) {
    inputs.push_back(absl::StrCat(input.name(), " = [", input.metric_key(), "]"));
  }
  const FormulaDefinition* formula = catalogue.FindFormula(derived.formula_id());
  return absl::StrCat("derived by ", derived.formula_id(), ": ",
                      formula != nullptr ? formula->expression : std::string("(unknown formula)"),
                      ", with ", absl::StrJoin(inputs, ", "));
}

std::string SourceText(const v1::Provenance& provenance, const MetricCatalogue& catalogue) {
  switch (provenance.source_case()) {
    case v1::Provenance::kMeasured:
      return MeasuredText(provenance.measured());
    case v1::Provenance::kDerived:
      return DerivedText(provenance.derived(), catalogue);
    case v1::Provenance::kGiven:
      return provenance.given().text().empty()
                 ? absl::StrCat("given by the client in ", provenance.given().field())
                 : absl::StrCat("given by the client in ", provenance.given().field(), ": \"",
                                provenance.given().text(), "\"");
    case v1::Provenance::kReference: {
      const v1::Reference& reference = provenance.reference();
      return absl::StrCat("printed in ", reference.table(), ", row ", reference.row(),
                          reference.column().empty() ? "" : ", column ", reference.column());
    }
    case v1::Provenance::SOURCE_NOT_SET:
      break;
  }
  return "without provenance";
}

std::string ScopeText(const v1::Scope& scope) {
  std::string text(absl::StripPrefix(v1::ScopeKind_Name(scope.kind()), "SCOPE_KIND_"));
  absl::AsciiStrToLower(&text);
  if (!scope.name().empty()) absl::StrAppend(&text, " ", scope.name());
  if (scope.device() >= 0) absl::StrAppend(&text, ", device ", scope.device());
  if (scope.rank() >= 0) absl::StrAppend(&text, ", rank ", scope.rank());
  return text;
}

const v1::Metric* FindInReport(const v1::Report& report, const MetricIndex& index,
                               const std::string& metric) {
  if (const v1::Metric* by_key = index.Find(metric)) return by_key;
  for (const v1::MetricRow& row : report.metrics().rows()) {
    const v1::Metric* shown = index.Find(row.metric_key());
    if (shown != nullptr && shown->id() == metric) return shown;
  }
  for (const v1::Metric& any : report.all_metrics()) {
    if (any.id() == metric) return &any;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<v1::ListKernelsResponse> ListKernelsPage(const v1::Measurement& measurement,
                                                        const v1::ListKernelsRequest& request) {
  ASSIGN_OR_RETURN(const uint32_t size, CheckPageSize(request.page_size()));
  const std::string scope = absl::StrCat("kernels of ", request.analysis_id());
  size_t first = 0;
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(const std::string payload, ReadPageToken(scope, request.page_token()));
    if (!absl::SimpleAtoi(payload, &first)) first = 0;
  }
  std::vector<const v1::KernelSummary*> kernels;
  for (const v1::KernelSummary& kernel : measurement.kernels()) kernels.push_back(&kernel);
  std::stable_sort(kernels.begin(), kernels.end(), [](const auto* a, const auto* b) {
    return a->total_time_ns() > b->total_time_ns();
  });
  v1::ListKernelsResponse response;
  response.set_total(kernels.size());
  const MetricIndex index(measurement.metrics());
  std::set<std::string> seen;
  const size_t end = std::min(kernels.size(), first + size);
  for (size_t i = first; i < end; ++i) {
    *response.add_kernels() = *kernels[i];
    for (const std::string& key : kernels[i]->metric_keys()) {
      const v1::Metric* metric = index.Find(key);
      if (metric == nullptr) continue;
      for (const auto& link : index.Chain(*metric, seen)) *response.add_metrics() = *link.metric;
    }
  }
  if (end < kernels.size()) response.set_next_page_token(MakePageToken(scope, absl::StrCat(end)));
  return response;
}

absl::StatusOr<v1::ExplainMetricResponse> ExplainMetric(const v1::Report& report,
                                                        const std::string& metric,
                                                        const MetricCatalogue& catalogue) {
  const MetricIndex index(report.all_metrics());
  const v1::Metric* root = FindInReport(report, index, metric);
  if (root == nullptr) {
    return MakeError(absl::StatusCode::kNotFound, "METRIC_NOT_FOUND",
                     absl::StrCat("metric '", metric, "': not in this report; a key of it (m1 to m",
                                  report.all_metrics_size(), ") or a catalogue id expected"));
  }
  v1::ExplainMetricResponse response;
  std::set<std::string> seen;
  for (const auto& link : index.Chain(*root, seen)) {
    *response.add_chain() = *link.metric;
    const MetricDefinition* definition = catalogue.Find(link.metric->id());
    absl::StrAppend(response.mutable_text(), std::string(size_t{2} * link.depth, ' '),
                    definition != nullptr ? definition->name_en : link.metric->id(), " = ",
                    ValueText(*link.metric, catalogue), " [", link.metric->key(), "] (",
                    ScopeText(link.metric->scope()),
                    "): ", SourceText(link.metric->provenance(), catalogue), "\n");
  }
  return response;
}

}  // namespace solward::service
