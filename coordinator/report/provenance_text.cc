#include "coordinator/report/provenance_text.h"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/units.h"

namespace solward::report {
namespace {

constexpr int kMostRanges = 4;

// "m12" -> 12, to sort keys as people read them.
uint64_t KeyNumber(absl::string_view key) {
  uint64_t number = 0;
  absl::ConsumePrefix(&key, "m");
  return absl::SimpleAtoi(key, &number) ? number : UINT64_MAX;
}

bool ByKey(const v1::Metric* a, const v1::Metric* b) {
  return std::pair(KeyNumber(a->key()), a->key()) < std::pair(KeyNumber(b->key()), b->key());
}

std::string AggregationLabel(v1::Aggregation aggregation) {
  return EnumTerm("provenance", "", v1::Aggregation_Name(aggregation));
}

// "[m4], [m7] to [m9]" of sorted or unsorted keys, their order kept.
std::string KeyList(const std::vector<std::string>& keys, absl::string_view to) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < keys.size();) {
    size_t end = i + 1;
    while (end < keys.size() && KeyNumber(keys[end]) == KeyNumber(keys[end - 1]) + 1) ++end;
    if (end - i >= 3) {
      parts.push_back(absl::StrCat("[", keys[i], "] ", to, " [", keys[end - 1], "]"));
      i = end;
    } else {
      parts.push_back(absl::StrCat("[", keys[i], "]"));
      ++i;
    }
  }
  return absl::StrJoin(parts, ", ");
}

std::string PlaceName(const v1::Scope& scope) {
  std::vector<std::string> where;
  if (scope.device() >= 0) where.push_back(absl::StrCat("GPU ", scope.device()));
  if (scope.rank() >= 0) where.push_back(absl::StrCat("rank ", scope.rank()));
  return where.empty() ? "" : CodeSpan(absl::StrJoin(where, " "));
}

// What metrics must share to be told in one line.
std::string GroupOf(const v1::Metric& metric) {
  const v1::Measured& measured = metric.provenance().measured();
  const absl::string_view name = metric.scope().name();
  return absl::StrCat(metric.id(), "\n", name.substr(0, name.find('|')), "\n",
                      metric.scope().device(), " ", metric.scope().rank(), "\n",
                      measured.artifact_id(), "\n", measured.rows().table(), "\n",
                      measured.aggregation());
}

}  // namespace

ProvenanceText::ProvenanceText(const v1::Report& report, TextWriter& writer) : writer_(writer) {
  for (const v1::CaptureOutcome& capture : report.captures()) {
    labels_.emplace(capture.artifact_id(), capture.label());
  }
  for (const v1::ArtifactReference& artifact : report.artifacts()) {
    labels_.emplace(artifact.id(), artifact.label());
  }
  std::set<std::pair<int, int>> places;
  for (const v1::Metric& metric : report.all_metrics()) {
    if (metric.scope().device() >= 0) {
      places.emplace(metric.scope().device(), metric.scope().rank());
    }
  }
  several_places_ = places.size() > 1;
}

std::string ProvenanceText::LabelOf(absl::string_view artifact_id) const {
  auto it = labels_.find(artifact_id);
  return it == labels_.end() || it->second.empty() ? std::string(artifact_id) : it->second;
}

std::string ProvenanceText::Short(const v1::Metric& metric) const {
  const v1::Provenance& provenance = metric.provenance();
  switch (provenance.source_case()) {
    case v1::Provenance::kMeasured: {
      const v1::Measured& measured = provenance.measured();
      const absl::string_view gap = measured.tool_version().empty() ? "" : " ";
      return CodeSpan(absl::StrCat(measured.tool(), gap, measured.tool_version(), ", ",
                                   LabelOf(measured.artifact_id())));
    }
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

std::string ProvenanceText::MeasuredText(const v1::Measured& measured) const {
  std::vector<std::string> parts;
  parts.push_back(absl::StrCat(measured.tool(), measured.tool_version().empty() ? "" : " ",
                               measured.tool_version()));
  if (!measured.artifact_id().empty()) parts.push_back(LabelOf(measured.artifact_id()));
  const v1::RowSelection& rows = measured.rows();
  std::string what = rows.table();
  absl::StrAppend(&what, what.empty() ? "" : ": ", measured.raw_name());
  parts.push_back(what);
  for (const v1::RowCondition& condition : rows.conditions()) {
    parts.push_back(absl::StrCat(condition.column(), "=", condition.value()));
  }
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
  if (!ranges.empty()) {
    parts.push_back(
        absl::StrCat(writer_.Label("provenance.rows"), " ", absl::StrJoin(ranges, ", ")));
  }
  if (rows.window_start_ns() != 0 || rows.window_end_ns() != 0) {
    parts.push_back(absl::StrCat(writer_.Label("provenance.window"), " ", rows.window_start_ns(),
                                 "–", rows.window_end_ns(), " ns"));
  }
  std::string how = writer_.Label(AggregationLabel(measured.aggregation()));
  if (measured.samples() > 1) absl::StrAppend(&how, " ", measured.samples());
  parts.push_back(how);
  return CodeSpan(absl::StrJoin(parts, ", "));
}

bool ProvenanceText::IsSum(const v1::Metric& metric) const {
  if (!metric.provenance().has_derived()) return false;
  const FormulaDefinition* formula =
      writer_.catalogue().FindFormula(metric.provenance().derived().formula_id());
  return formula != nullptr && formula->expression == "a + b";
}

absl::StatusOr<std::vector<std::string>> ProvenanceText::TermsOfSum(
    const v1::Metric& metric) const {
  std::vector<std::string> terms;
  std::vector<const v1::Metric*> stack = {&metric};
  // Derived metrics come after their inputs, so this ends; the cap is for a
  // report that another program wrote.
  for (int steps = 0; !stack.empty() && steps < 100000; ++steps) {
    const v1::Metric* top = stack.back();
    stack.pop_back();
    const bool opened = top == &metric || (IsSum(*top) && writer_.cited().count(top->key()) == 0 &&
                                           top->id() == metric.id());
    if (!opened) {
      terms.push_back(top->key());
      continue;
    }
    const auto& inputs = top->provenance().derived().inputs();
    for (auto it = inputs.rbegin(); it != inputs.rend(); ++it) {
      ASSIGN_OR_RETURN(const v1::Metric* input, writer_.Find(it->metric_key()));
      stack.push_back(input);
    }
  }
  return terms;
}

absl::StatusOr<std::string> ProvenanceText::DerivedText(const v1::Derived& derived) const {
  const FormulaDefinition* formula = writer_.catalogue().FindFormula(derived.formula_id());
  std::vector<std::string> inputs;
  for (const v1::DerivedInput& input : derived.inputs()) {
    RETURN_IF_ERROR(writer_.Find(input.metric_key()).status());
    inputs.push_back(absl::StrCat(CodeSpan(input.name()), " [", input.metric_key(), "]"));
  }
  return absl::StrCat(writer_.Label("provenance.derived"), ", ",
                      CodeSpan(formula == nullptr ? derived.formula_id() : formula->expression),
                      " ", writer_.Label("provenance.with"), " ", absl::StrJoin(inputs, ", "));
}

std::string ProvenanceText::ReferenceText(const v1::Reference& reference) const {
  std::string text =
      absl::StrCat(writer_.Label(absl::StrCat("provenance.table.", reference.table())), ", ",
                   CodeSpan(absl::StrCat(reference.row(), reference.column().empty() ? "" : ", ",
                                         reference.column())));
  if (!reference.source().empty()) {
    absl::StrAppend(&text, ", ", writer_.Label("provenance.source"), " ",
                    CodeSpan(reference.source()));
  }
  if (!reference.confidence().empty()) {
    absl::StrAppend(&text, ", ", writer_.Label("provenance.confidence"), " ",
                    CodeSpan(reference.confidence()));
  }
  return text;
}

absl::StatusOr<std::string> ProvenanceText::Long(const v1::Metric& metric) const {
  const v1::Provenance& provenance = metric.provenance();
  switch (provenance.source_case()) {
    case v1::Provenance::kMeasured:
      return MeasuredText(provenance.measured());
    case v1::Provenance::kDerived: {
      if (!IsSum(metric)) return DerivedText(provenance.derived());
      ASSIGN_OR_RETURN(const std::vector<std::string> terms, TermsOfSum(metric));
      return absl::StrCat(writer_.Label("provenance.sum_of"), " ",
                          KeyList(terms, writer_.Label("provenance.to")));
    }
    case v1::Provenance::kGiven: {
      const v1::Given& given = provenance.given();
      std::string text =
          absl::StrCat(writer_.Label("provenance.given"), ", ", CodeSpan(given.field()));
      if (!given.text().empty()) absl::StrAppend(&text, ", ", writer_.Quotation(given.text()));
      return text;
    }
    case v1::Provenance::kReference:
      return ReferenceText(provenance.reference());
    case v1::Provenance::SOURCE_NOT_SET:
      break;
  }
  return MakeError(absl::StatusCode::kInternal, "REPORT_PROVENANCE_MISSING",
                   absl::StrCat("report: metric \"", metric.key(), "\" has no provenance"));
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
  if (!name.empty()) parts.push_back(CodeSpan(writer_.KernelName(name)));
  if (!detail.empty()) parts.push_back(CodeSpan(detail));
  const bool device = scope.kind() == v1::SCOPE_KIND_DEVICE;
  std::string place = device ? PlaceName(scope) : PlaceText(scope);
  if (!place.empty()) parts.push_back(std::move(place));
  return absl::StrJoin(parts, ", ");
}

absl::StatusOr<std::vector<const v1::Metric*>> ProvenanceText::MetricsToExplain() const {
  std::set<std::string> seen = writer_.cited();
  std::deque<std::string> queue(seen.begin(), seen.end());
  std::vector<const v1::Metric*> metrics;
  while (!queue.empty()) {
    ASSIGN_OR_RETURN(const v1::Metric* metric, writer_.Find(queue.front()));
    queue.pop_front();
    metrics.push_back(metric);
    std::vector<std::string> next;
    if (IsSum(*metric)) {
      ASSIGN_OR_RETURN(next, TermsOfSum(*metric));
    } else {
      for (const auto& input : metric->provenance().derived().inputs()) {
        next.push_back(input.metric_key());
      }
    }
    for (const std::string& key : next) {
      if (seen.insert(key).second) queue.push_back(key);
    }
  }
  std::sort(metrics.begin(), metrics.end(), ByKey);
  return metrics;
}

absl::StatusOr<std::string> ProvenanceText::Legend() const {
  const std::set<std::string> cited = writer_.cited();
  ASSIGN_OR_RETURN(const std::vector<const v1::Metric*> metrics, MetricsToExplain());
  std::map<std::string, std::vector<const v1::Metric*>> groups;
  for (const v1::Metric* metric : metrics) {
    if (cited.count(metric->key()) == 0 && metric->provenance().has_measured()) {
      groups[GroupOf(*metric)].push_back(metric);
    }
  }
  std::string out;
  for (const v1::Metric* metric : metrics) {
    const std::string name = writer_.MetricName(metric->id());
    const std::string scope = ScopeText(metric->scope());
    const std::string gap = scope.empty() ? "" : ", ";
    if (cited.count(metric->key()) > 0) {
      ASSIGN_OR_RETURN(const std::string from, Long(*metric));
      absl::StrAppend(&out, "- [", metric->key(), "] ", name, gap, scope, writer_.Colon(), from,
                      "\n");
      continue;
    }
    auto group = groups.find(GroupOf(*metric));
    if (group != groups.end() && group->second.size() >= 3) {
      if (group->second.front() != metric) continue;
      std::vector<std::string> keys;
      for (const v1::Metric* member : group->second) keys.push_back(member->key());
      v1::Scope common = metric->scope();
      common.set_name(common.name().substr(0, common.name().find('|')));
      absl::StrAppend(&out, "- ", KeyList(keys, writer_.Label("provenance.to")), " ", name, ", ",
                      ScopeText(common), writer_.Colon(), writer_.Label("provenance.several"), ", ",
                      Short(*metric), "\n");
      continue;
    }
    ASSIGN_OR_RETURN(const std::string from, Long(*metric));
    absl::StrAppend(&out, "- ", name, gap, scope, ", ", writer_.Value(*metric), writer_.Colon(),
                    from, "\n");
  }
  return out;
}

}  // namespace solward::report
