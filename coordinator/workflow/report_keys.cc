// Keys of a report: m1, m2, ... in order of first use, everywhere the same.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/metric.h"
#include "common/status.h"
#include "coordinator/workflow/report_input.h"

namespace solward::workflow {
namespace {

using Visit = std::function<void(std::string*)>;
using Keys = google::protobuf::RepeatedPtrField<std::string>;

void VisitKey(std::string* key, const Visit& visit) {
  if (!key->empty()) visit(key);
}

void VisitKeys(Keys* keys, const Visit& visit) {
  for (std::string& key : *keys) VisitKey(&key, visit);
}

// Maps have no order of their own: by name, so that a report is deterministic.
void VisitMap(google::protobuf::Map<std::string, std::string>* map, const Visit& visit) {
  std::vector<std::string> names;
  for (const auto& [name, key] : *map) names.push_back(name);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) VisitKey(&(*map)[name], visit);
}

void VisitStatement(v1::Statement* statement, const Visit& visit) {
  auto& arguments = *statement->mutable_arguments();
  std::vector<std::string> names;
  for (const auto& [name, argument] : arguments) {
    if (argument.value_case() == v1::StatementArgument::kMetricKey) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) visit(arguments[name].mutable_metric_key());
}

void VisitMetricsSection(v1::MetricsSection* metrics, const Visit& visit) {
  for (v1::MetricRow& row : *metrics->mutable_rows()) {
    VisitKey(row.mutable_metric_key(), visit);
    VisitKeys(row.mutable_companion_keys(), visit);
  }
  for (v1::TimeTable& table : *metrics->mutable_time_tables()) {
    VisitKeys(table.mutable_share_keys(), visit);
    VisitKey(table.mutable_sum_key(), visit);
    VisitKeys(table.mutable_context_keys(), visit);
  }
  for (v1::KernelRow& kernel : *metrics->mutable_kernels()) {
    VisitKeys(kernel.mutable_metric_keys(), visit);
  }
}

void VisitClassification(v1::Classification* classification, const Visit& visit) {
  for (v1::RankedClass& ranked : *classification->mutable_ranking()) {
    VisitKey(ranked.mutable_share_key(), visit);
    VisitKey(ranked.mutable_recoverable_key(), visit);
    VisitKeys(ranked.mutable_evidence_keys(), visit);
  }
  for (v1::Statement& reason : *classification->mutable_confidence_reasons()) {
    VisitStatement(&reason, visit);
  }
  VisitKey(classification->mutable_margin_key(), visit);
  for (v1::MissingEvidence& missing : *classification->mutable_missing()) {
    if (missing.has_why()) VisitStatement(missing.mutable_why(), visit);
  }
  VisitKey(classification->mutable_flip_step_time_key(), visit);
  for (v1::KernelLimit& limit : *classification->mutable_kernel_limits()) {
    VisitKey(limit.mutable_utilization_key(), visit);
    VisitKey(limit.mutable_time_share_key(), visit);
    VisitKey(limit.mutable_stall_key(), visit);
  }
}

// Every key of the report in reading order, but for those in all_metrics.
void VisitReport(v1::Report* report, const Visit& visit) {
  for (v1::Statement& statement : *report->mutable_summary()->mutable_statements()) {
    VisitStatement(&statement, visit);
  }
  VisitMetricsSection(report->mutable_metrics(), visit);
  for (v1::ReportedFinding& reported : *report->mutable_findings()->mutable_findings()) {
    VisitStatement(reported.mutable_statement(), visit);
    VisitMap(reported.mutable_finding()->mutable_metric_keys(), visit);
  }
  v1::RecommendationsSection* section = report->mutable_recommendations();
  for (v1::Recommendation& recommendation : *section->mutable_recommendations()) {
    VisitStatement(recommendation.mutable_action(), visit);
    if (recommendation.has_effect()) {
      VisitKey(recommendation.mutable_effect()->mutable_metric_key(), visit);
    }
    if (recommendation.has_verify()) VisitStatement(recommendation.mutable_verify(), visit);
  }
  if (section->has_none_because()) VisitStatement(section->mutable_none_because(), visit);
  VisitClassification(report->mutable_classification(), visit);
}

}  // namespace

absl::Status RenameKeys(const ReportInput& input, v1::Report& report) {
  std::map<std::string, std::string> renamed;
  std::deque<std::string> order;
  auto use = [&](const std::string& key) {
    if (renamed.emplace(key, absl::StrCat("m", renamed.size() + 1)).second) order.push_back(key);
  };
  VisitReport(&report, [&](std::string* key) { use(*key); });
  report.clear_all_metrics();
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string key = order[i];
    const v1::Metric* metric = input.Find(key);
    if (metric == nullptr) {
      return MakeError(
          absl::StatusCode::kInternal, "REPORT_METRIC_MISSING",
          absl::StrCat("report: a part refers to metric \"", key,
                       "\", which neither the measurement nor the classification has"));
    }
    // A number without a valid origin does not enter a report.
    const auto checked = solward::Metric::FromProto(input.knowledge().catalogue, *metric);
    if (!checked.ok()) {
      return MakeError(absl::StatusCode::kInternal, "REPORT_PROVENANCE_INVALID",
                       absl::StrCat("report: metric \"", key, "\" (", metric->id(),
                                    "): ", checked.status().message()));
    }
    for (const v1::DerivedInput& part : metric->provenance().derived().inputs()) {
      use(part.metric_key());
    }
    *report.add_all_metrics() = *metric;
  }
  for (v1::Metric& metric : *report.mutable_all_metrics()) {
    metric.set_key(renamed[metric.key()]);
    if (!metric.provenance().has_derived()) continue;
    v1::Derived* derived = metric.mutable_provenance()->mutable_derived();
    for (v1::DerivedInput& part : *derived->mutable_inputs()) {
      part.set_metric_key(renamed[part.metric_key()]);
    }
  }
  VisitReport(&report, [&](std::string* key) { *key = renamed[*key]; });
  return absl::OkStatus();
}

}  // namespace solward::workflow
