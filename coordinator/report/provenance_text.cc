#include "coordinator/report/provenance_text.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace solward::report {
namespace {

constexpr int kMostRanges = 4;

std::string ToolName(const v1::Measured& measured) {
  const absl::string_view gap = measured.tool_version().empty() ? "" : " ";
  return absl::StrCat(measured.tool(), gap, measured.tool_version());
}

std::string PlaceName(const v1::Scope& scope) {
  std::vector<std::string> where;
  if (scope.device() >= 0) where.push_back(absl::StrCat("GPU ", scope.device()));
  if (scope.rank() >= 0) where.push_back(absl::StrCat("rank ", scope.rank()));
  return where.empty() ? "" : CodeSpan(absl::StrJoin(where, " "));
}

// Rows of one kernel or call: the metric's scope says which.
bool NamesTheScope(const v1::RowCondition& condition) { return condition.column() == "name"; }

std::string RangesOf(const v1::RowSelection& rows) {
  std::vector<std::string> ranges;
  for (const v1::RowRange& range : rows.ranges()) {
    if (static_cast<int>(ranges.size()) == kMostRanges) {
      ranges.push_back("…");
      break;
    }
    ranges.push_back(range.first() == range.last()
                         ? absl::StrCat(range.first())
                         : absl::StrCat(range.first(), "–", range.last()));
  }
  return absl::StrJoin(ranges, ", ");
}

}  // namespace

ProvenanceText::ProvenanceText(const v1::Report& report, const TextWriter& writer)
    : writer_(writer) {
  for (const v1::CaptureOutcome& capture : report.captures()) {
    labels_.emplace(capture.artifact_id(), capture.label());
  }
  for (const v1::ArtifactReference& artifact : report.artifacts()) {
    labels_.emplace(artifact.id(), artifact.label());
  }
  std::set<std::pair<int, int>> places;
  std::set<std::string> kernels;
  for (const v1::Metric& metric : report.all_metrics()) {
    const std::string& name = metric.scope().name();
    if (metric.scope().kind() == v1::SCOPE_KIND_KERNEL && !name.empty()) {
      kernels.insert(name.substr(0, name.find('|')));
    }
    if (metric.scope().device() >= 0) {
      places.emplace(metric.scope().device(), metric.scope().rank());
    }
  }
  several_places_ = places.size() > 1;
  several_kernels_ = kernels.size() > 1;
}

std::string ProvenanceText::LabelOf(absl::string_view artifact_id) const {
  auto it = labels_.find(artifact_id);
  return it == labels_.end() || it->second.empty() ? std::string(artifact_id) : it->second;
}

std::string ProvenanceText::Short(const v1::Metric& metric) const {
  const v1::Provenance& provenance = metric.provenance();
  switch (provenance.source_case()) {
    case v1::Provenance::kMeasured:
      return CodeSpan(absl::StrCat(ToolName(provenance.measured()), ", ",
                                   LabelOf(provenance.measured().artifact_id())));
    case v1::Provenance::kDerived:
      return writer_.Label("provenance.derived");
    case v1::Provenance::kGiven:
      return writer_.Label("provenance.given");
    case v1::Provenance::kReference:
      return writer_.Label(absl::StrCat("provenance.table.", provenance.reference().table()));
    case v1::Provenance::SOURCE_NOT_SET:
      break;
  }
  return "";
}

std::string ProvenanceText::MeasuredSource(const v1::Measured& measured) const {
  std::vector<std::string> parts = {ToolName(measured)};
  if (!measured.artifact_id().empty()) parts.push_back(LabelOf(measured.artifact_id()));
  const v1::RowSelection& rows = measured.rows();
  if (!rows.table().empty()) parts.push_back(rows.table());
  for (const v1::RowCondition& condition : rows.conditions()) {
    if (NamesTheScope(condition)) continue;
    parts.push_back(absl::StrCat(condition.column(), "=", condition.value()));
  }
  if (rows.window_start_ns() != 0 || rows.window_end_ns() != 0) {
    parts.push_back(absl::StrCat(rows.window_start_ns(), "–", rows.window_end_ns(), " ns"));
  }
  return absl::StrCat(
      CodeSpan(absl::StrJoin(parts, ", ")), ", ",
      writer_.Label(EnumTerm("provenance", "", v1::Aggregation_Name(measured.aggregation()))));
}

std::string ProvenanceText::MeasuredDetail(const v1::Measured& measured) const {
  std::vector<std::string> parts = {measured.raw_name()};
  if (const std::string ranges = RangesOf(measured.rows()); !ranges.empty()) {
    parts.push_back(absl::StrCat(writer_.Label("provenance.rows"), " ", ranges));
  }
  if (measured.samples() > 1) parts.push_back(absl::StrCat("n=", measured.samples()));
  return CodeSpan(absl::StrJoin(parts, ", "));
}

std::string ProvenanceText::Source(const v1::Metric& metric) const {
  const v1::Provenance& provenance = metric.provenance();
  if (provenance.has_measured()) return MeasuredSource(provenance.measured());
  std::string source = Short(metric);
  if (provenance.has_derived()) {
    const std::string& id = provenance.derived().formula_id();
    const FormulaDefinition* formula = writer_.catalogue().FindFormula(id);
    absl::StrAppend(&source, ", ", CodeSpan(formula == nullptr ? id : formula->expression));
  } else if (provenance.has_reference()) {
    const v1::Reference& reference = provenance.reference();
    if (!reference.source().empty()) {
      absl::StrAppend(&source, ", ", writer_.Label("provenance.source"), " ",
                      CodeSpan(reference.source()));
    }
    if (!reference.confidence().empty()) {
      absl::StrAppend(&source, ", ", writer_.Label("provenance.confidence"), " ",
                      CodeSpan(reference.confidence()));
    }
  }
  return source;
}

std::string ProvenanceText::Detail(const v1::Metric& metric) const {
  const v1::Provenance& provenance = metric.provenance();
  if (provenance.has_measured()) return MeasuredDetail(provenance.measured());
  if (provenance.has_given()) {
    const v1::Given& given = provenance.given();
    const std::string words =
        given.text().empty() ? "" : absl::StrCat(", ", writer_.Quotation(given.text()));
    return absl::StrCat(CodeSpan(given.field()), words);
  }
  if (provenance.has_reference()) {
    const v1::Reference& reference = provenance.reference();
    const absl::string_view gap = reference.column().empty() ? "" : ", ";
    return CodeSpan(absl::StrCat(reference.row(), gap, reference.column()));
  }
  return "";
}

std::string ProvenanceText::PlaceText(const v1::Scope& scope) const {
  return several_places_ ? PlaceName(scope) : "";
}

std::string ProvenanceText::ScopeText(const v1::Scope& scope) const {
  std::vector<std::string> parts;
  absl::string_view name = scope.name();
  absl::string_view detail;
  if (size_t bar = name.find('|'); bar != absl::string_view::npos) {
    detail = name.substr(bar + 1);
    name = name.substr(0, bar);
  }
  if (scope.kind() == v1::SCOPE_KIND_RUN) parts.push_back(writer_.Label("scope.run"));
  if (scope.kind() == v1::SCOPE_KIND_STEP) parts.push_back(writer_.Label("scope.step"));
  const bool kernel = scope.kind() == v1::SCOPE_KIND_KERNEL;
  if (kernel && !several_kernels_) {
    parts.push_back(writer_.Label("scope.kernel"));
  } else if (!name.empty()) {
    parts.push_back(CodeSpan(writer_.KernelName(name)));
  }
  if (!detail.empty()) parts.push_back(CodeSpan(detail));
  const bool device = scope.kind() == v1::SCOPE_KIND_DEVICE;
  std::string place = device ? PlaceName(scope) : PlaceText(scope);
  if (!place.empty()) parts.push_back(std::move(place));
  return absl::StrJoin(parts, ", ");
}

}  // namespace solward::report
