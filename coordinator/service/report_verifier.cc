#include "coordinator/service/report_verifier.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::service {
namespace {

// Metrics sent to a specialist at a time.
constexpr int kBatch = 500;

// The last bits may differ between two computers.
bool Same(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

v1::RecomputedMetric Verdict(const v1::Metric& metric, v1::RecomputeVerdict verdict,
                             const std::string& detail) {
  v1::RecomputedMetric out;
  out.set_key(metric.key());
  out.set_verdict(verdict);
  out.set_detail(detail);
  return out;
}

v1::RecomputedMetric Compare(const v1::Metric& metric, double value, const std::string& source) {
  v1::RecomputedMetric out = Verdict(
      metric,
      Same(metric.value(), value) ? v1::RECOMPUTE_VERDICT_MATCHES : v1::RECOMPUTE_VERDICT_DIFFERS,
      source);
  out.set_value(value);
  return out;
}

std::optional<double> PeakColumn(const GpuPeak& row, const std::string& column) {
  const std::map<std::string, std::optional<double>> columns = {
      {"fp64", row.fp64},
      {"fp64_tc", row.fp64_tc},
      {"fp32", row.fp32},
      {"boost_mhz", row.boost_hz},
      {"tensor_mhz", row.tensor_hz},
      {"dram_gb_per_s", row.dram_bytes_per_second},
      {"nvlink_gb_per_s", row.nvlink_bytes_per_second}};
  if (const auto it = columns.find(column); it != columns.end()) return it->second;
  for (int dtype = 1; dtype < v1::Dtype_ARRAYSIZE; ++dtype) {
    const auto candidate = static_cast<v1::Dtype>(dtype);
    if (row.ColumnOf(candidate) == column) return row.PeakOf(candidate);
  }
  return std::nullopt;
}

std::optional<double> Parameter(const ClassificationParameters& p, const std::string& name) {
  const std::map<std::string, double> values = {
      {"floor_percent", p.floor_percent},
      {"margin_percent", p.margin_percent},
      {"limit_threshold_percent", p.limit_threshold_percent},
      {"limit_margin_percent", p.limit_margin_percent},
      {"launch_call_ns", p.launch_call_ns},
      {"synchronization_ns", p.synchronization_ns},
      {"host_stretch_ns", p.host_stretch_ns},
      {"long_host_stretch_ns", p.long_host_stretch_ns},
      {"flops_disagreement_percent", p.flops_disagreement_percent},
      {"near_roof_percent", p.near_roof_percent}};
  const auto it = values.find(name);
  return it == values.end() ? std::nullopt : std::optional<double>(it->second);
}

class Verifier {
 public:
  Verifier(const v1::Report& report, const v1::Understanding& understanding,
           const workflow::Knowledge& knowledge)
      : report_(report), understanding_(understanding), knowledge_(knowledge) {
    for (const v1::Metric& metric : report.all_metrics()) values_[metric.key()] = metric.value();
    for (const v1::ArtifactReference& artifact : report.artifacts()) {
      instances_[artifact.id()] = artifact.specialist_instance();
    }
  }

  v1::VerifyReportResponse Run(const RecomputeAt& recompute_at) {
    std::map<std::string, std::vector<const v1::Metric*>> by_instance;
    for (const v1::Metric& metric : report_.all_metrics()) {
      if (!metric.provenance().has_measured()) {
        verdicts_[metric.key()] = Local(metric);
        continue;
      }
      const std::string& artifact = metric.provenance().measured().artifact_id();
      const auto instance = instances_.find(artifact);
      if (instance == instances_.end()) {
        verdicts_[metric.key()] =
            Verdict(metric, v1::RECOMPUTE_VERDICT_NO_ARTIFACT,
                    absl::StrCat("artifact ", artifact, " is not listed in the report"));
        continue;
      }
      by_instance[instance->second].push_back(&metric);
    }
    for (const auto& [instance, metrics] : by_instance) Remote(instance, metrics, recompute_at);
    return Collect();
  }

 private:
  v1::RecomputedMetric Local(const v1::Metric& metric) const {
    switch (metric.provenance().source_case()) {
      case v1::Provenance::kDerived:
        return Derived(metric);
      case v1::Provenance::kGiven:
        return Given(metric);
      case v1::Provenance::kReference:
        return Reference(metric);
      default:
        break;
    }
    return Verdict(metric, v1::RECOMPUTE_VERDICT_NOT_FOUND, "it has no provenance");
  }

  v1::RecomputedMetric Derived(const v1::Metric& metric) const {
    const v1::Derived& derived = metric.provenance().derived();
    const FormulaDefinition* formula = knowledge_.catalogue.FindFormula(derived.formula_id());
    if (formula == nullptr) {
      return Verdict(metric, v1::RECOMPUTE_VERDICT_NOT_FOUND,
                     absl::StrCat("formula ", derived.formula_id(), " is not in the catalogue"));
    }
    std::map<std::string, double, std::less<>> inputs;
    for (const v1::DerivedInput& input : derived.inputs()) {
      const auto value = values_.find(input.metric_key());
      if (value == values_.end()) {
        return Verdict(metric, v1::RECOMPUTE_VERDICT_NOT_FOUND,
                       absl::StrCat("input ", input.metric_key(), " is not in the report"));
      }
      inputs[input.name()] = value->second;
    }
    const absl::StatusOr<double> value = EvaluateFormula(formula->expression, inputs);
    if (!value.ok()) {
      return Verdict(metric, v1::RECOMPUTE_VERDICT_NOT_FOUND,
                     std::string(value.status().message()));
    }
    return Compare(metric, *value, absl::StrCat("formula ", formula->id));
  }

  // The request read again must give the same figure from the same place.
  v1::RecomputedMetric Given(const v1::Metric& metric) const {
    const v1::Given& given = metric.provenance().given();
    for (const v1::Metric& read : understanding_.context_metrics()) {
      if (read.id() == metric.id() && read.scope().name() == metric.scope().name() &&
          read.provenance().given().field() == given.field()) {
        return Compare(metric, read.value(), absl::StrCat("request, ", given.field()));
      }
    }
    return Verdict(metric, v1::RECOMPUTE_VERDICT_NOT_FOUND,
                   absl::StrCat("the request does not give it in ", given.field()));
  }

  v1::RecomputedMetric Reference(const v1::Metric& metric) const {
    const v1::Reference& reference = metric.provenance().reference();
    std::optional<double> value;
    if (reference.table() == "classification") {
      value = Parameter(knowledge_.parameters, reference.row());
    } else if (reference.table() == "gpu_peaks") {
      for (const GpuPeak& row : knowledge_.peaks.rows()) {
        if (row.name == reference.row()) value = PeakColumn(row, reference.column());
      }
    }
    const std::string place =
        absl::StrCat("table ", reference.table(), ", row ", reference.row(),
                     reference.column().empty() ? "" : ", column ", reference.column());
    if (value.has_value()) return Compare(metric, *value, place);
    return Verdict(metric, v1::RECOMPUTE_VERDICT_NOT_FOUND, absl::StrCat(place, ": no such cell"));
  }

  void Remote(const std::string& instance, const std::vector<const v1::Metric*>& metrics,
              const RecomputeAt& recompute_at) {
    for (size_t first = 0; first < metrics.size(); first += kBatch) {
      const size_t end = std::min(metrics.size(), first + kBatch);
      v1::RecomputeRequest request;
      for (size_t i = first; i < end; ++i) *request.add_metrics() = *metrics[i];
      const absl::StatusOr<v1::RecomputeResponse> response = recompute_at(instance, request);
      if (response.ok()) {
        for (const v1::RecomputedMetric& verdict : response->metrics()) {
          verdicts_.emplace(verdict.key(), verdict);
        }
      }
      for (size_t i = first; i < end; ++i) {
        // emplace: what the specialist answered stays.
        verdicts_.emplace(metrics[i]->key(),
                          response.ok() ? Verdict(*metrics[i], v1::RECOMPUTE_VERDICT_NOT_FOUND,
                                                  "the specialist gave no verdict")
                                        : Verdict(*metrics[i], v1::RECOMPUTE_VERDICT_NO_ARTIFACT,
                                                  std::string(response.status().message())));
      }
    }
  }

  v1::VerifyReportResponse Collect() const {
    v1::VerifyReportResponse response;
    for (const v1::Metric& metric : report_.all_metrics()) {
      const v1::RecomputedMetric& verdict = verdicts_.at(metric.key());
      *response.add_metrics() = verdict;
      const bool matches = verdict.verdict() == v1::RECOMPUTE_VERDICT_MATCHES;
      if (matches)
        response.set_matching(response.matching() + 1);
      else
        response.set_not_matching(response.not_matching() + 1);
    }
    return response;
  }

  const v1::Report& report_;
  const v1::Understanding& understanding_;
  const workflow::Knowledge& knowledge_;
  std::map<std::string, double> values_;                  // by key
  std::map<std::string, std::string> instances_;          // by artifact
  std::map<std::string, v1::RecomputedMetric> verdicts_;  // by key
};

}  // namespace

v1::VerifyReportResponse VerifyReport(const v1::Report& report,
                                      const v1::Understanding& understanding,
                                      const workflow::Knowledge& knowledge,
                                      const RecomputeAt& recompute_at) {
  return Verifier(report, understanding, knowledge).Run(recompute_at);
}

}  // namespace solward::service
