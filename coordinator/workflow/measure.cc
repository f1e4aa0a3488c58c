#include "coordinator/workflow/measure.h"

#include <algorithm>

#include "common/status.h"
#include "coordinator/workflow/measure_draft.h"

namespace solward::workflow {

absl::StatusOr<const Metric*> MeasureDraft::Derive(
    absl::string_view formula_id, v1::Scope scope,
    const std::vector<std::pair<std::string, const Metric*>>& inputs) {
  ASSIGN_OR_RETURN(Metric metric,
                   Metric::Derive(catalogue(), formula_id, std::move(scope), inputs));
  return &metrics.Add(std::move(metric));
}

v1::Finding& MeasureDraft::AddFinding(
    absl::string_view id, v1::Severity severity,
    std::initializer_list<std::pair<absl::string_view, const Metric*>> named_metrics,
    std::initializer_list<std::pair<absl::string_view, absl::string_view>> words) {
  v1::Finding& finding = *out.add_findings();
  finding.set_id(std::string(id));
  finding.set_severity(severity);
  for (const auto& [name, metric] : named_metrics) {
    (*finding.mutable_metric_keys())[std::string(name)] = metric->key();
  }
  for (const auto& [name, word] : words) {
    (*finding.mutable_words())[std::string(name)] = std::string(word);
  }
  return finding;
}

void MeasureDraft::AddUnmeasured(absl::string_view id, v1::ScopeKind scope,
                                 v1::UnmeasuredReason reason, absl::string_view detail,
                                 absl::string_view remedy) {
  v1::UnmeasuredMetric& unmeasured = *out.add_unmeasured();
  unmeasured.set_id(std::string(id));
  unmeasured.mutable_scope()->set_kind(scope);
  unmeasured.mutable_scope()->set_device(-1);
  unmeasured.mutable_scope()->set_rank(-1);
  unmeasured.set_reason(reason);
  unmeasured.set_detail(std::string(detail));
  unmeasured.set_remedy(std::string(remedy));
}

const Metric* MeasureDraft::Context(absl::string_view id) const {
  const std::vector<const Metric*> all = metrics.FindAll(id);
  return all.empty() ? nullptr : all.front();
}

std::vector<WantedMetric> MeasureDraft::Wanted() const {
  std::vector<WantedMetric> wanted;
  const auto add = [&](absl::string_view name, v1::ScopeKind scope) {
    for (const std::string& id : catalogue().Expand(name)) {
      const bool known = std::any_of(wanted.begin(), wanted.end(), [&](const WantedMetric& w) {
        return w.id == id && w.scope == scope;
      });
      if (!known) wanted.push_back({id, scope});
    }
  };
  const auto& desired = understanding.request().desired_metrics();
  for (const v1::DesiredMetric& metric : desired) add(metric.id(), metric.scope());
  if (desired.empty()) {
    for (const std::string& id : catalogue().default_metrics()) {
      add(id, v1::SCOPE_KIND_UNSPECIFIED);
    }
  }
  return wanted;
}

bool MeasureDraft::Wants(absl::string_view id) const {
  const std::vector<WantedMetric> wanted = Wanted();
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const WantedMetric& metric) { return metric.id == id; });
}

absl::StatusOr<v1::Measurement> Measure(const v1::Understanding& understanding,
                                        const v1::Evidence& evidence, const Knowledge& knowledge) {
  MeasureDraft draft{understanding, knowledge, {}, {}};
  RETURN_IF_ERROR(MergeResults(evidence, draft));
  RETURN_IF_ERROR(AddWindowShares(draft));
  RETURN_IF_ERROR(AddUnprofiledMetrics(draft));
  RETURN_IF_ERROR(AddPeakMetrics(draft));
  FindDisagreements(draft);
  SelectWanted(draft);
  for (const Metric& metric : draft.metrics.metrics()) *draft.out.add_metrics() = metric.proto();
  return std::move(draft.out);
}

}  // namespace solward::workflow
