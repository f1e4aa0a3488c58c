#include "coordinator/workflow/classify_draft.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace solward::workflow {
namespace {

struct NamedParameter {
  absl::string_view name;
  double ClassificationParameters::*value;
};

constexpr NamedParameter kParameters[] = {
    {"floor_percent", &ClassificationParameters::floor_percent},
    {"margin_percent", &ClassificationParameters::margin_percent},
    {"limit_threshold_percent", &ClassificationParameters::limit_threshold_percent},
    {"limit_margin_percent", &ClassificationParameters::limit_margin_percent},
    {"near_roof_percent", &ClassificationParameters::near_roof_percent},
    {"launch_call_ns", &ClassificationParameters::launch_call_ns},
    {"synchronization_ns", &ClassificationParameters::synchronization_ns},
};

}  // namespace

absl::StatusOr<ClassifyDraft> ClassifyDraft::Make(const v1::Measurement& measurement,
                                                  const Knowledge& knowledge) {
  ClassifyDraft draft(measurement, knowledge);
  const auto keys = draft.metrics_.Merge(knowledge.catalogue, measurement.metrics());
  if (!keys.ok()) {
    return MakeError(absl::StatusCode::kInternal, "MEASUREMENT_INVALID",
                     absl::StrCat("measurement: ", keys.status().message()));
  }
  for (const auto& [old_key, new_key] : *keys) {
    if (old_key == new_key) continue;
    return MakeError(absl::StatusCode::kInternal, "MEASUREMENT_INVALID",
                     absl::StrCat("measurement: metric keys: expected \"", new_key, "\", found \"",
                                  old_key, "\"; they count from m1 in order"));
  }
  return draft;
}

absl::StatusOr<const Metric*> ClassifyDraft::Derive(
    absl::string_view formula_id, v1::Scope scope,
    const std::vector<std::pair<std::string, const Metric*>>& inputs) {
  ASSIGN_OR_RETURN(Metric metric,
                   Metric::Derive(catalogue(), formula_id, std::move(scope), inputs));
  return &metrics_.Add(std::move(metric));
}

absl::StatusOr<const Metric*> ClassifyDraft::Sum(absl::string_view formula_id,
                                                 const v1::Scope& scope,
                                                 const std::vector<const Metric*>& terms) {
  const Metric* sum = terms.empty() ? nullptr : terms.front();
  for (size_t i = 1; i < terms.size(); ++i) {
    ASSIGN_OR_RETURN(sum, Derive(formula_id, scope, {{"a", sum}, {"b", terms[i]}}));
  }
  return sum;
}

absl::StatusOr<const Metric*> ClassifyDraft::Parameter(absl::string_view name) {
  if (const auto found = parameters_.find(name); found != parameters_.end()) return found->second;
  for (const NamedParameter& parameter : kParameters) {
    if (parameter.name != name) continue;
    v1::Reference reference;
    reference.set_table("classification");
    reference.set_row(std::string(name));
    reference.set_source("config/classification.yaml");
    const bool percent = absl::EndsWith(name, "_percent");
    ASSIGN_OR_RETURN(
        Metric metric,
        Metric::Refer(catalogue(), percent ? "parameter_percent" : "parameter_time",
                      parameters().*parameter.value, RunScope(), std::move(reference)));
    const Metric* added = &metrics_.Add(std::move(metric));
    parameters_.emplace(std::string(name), added);
    return added;
  }
  return MakeError(absl::StatusCode::kInternal, "PARAMETER_UNKNOWN",
                   absl::StrCat("classification parameter \"", name, "\" is not known"));
}

std::vector<v1::Metric> ClassifyDraft::NewMetrics() const {
  std::vector<v1::Metric> made;
  for (size_t i = static_cast<size_t>(measurement_->metrics_size()); i < metrics_.size(); ++i) {
    made.push_back(metrics_.metrics()[i].proto());
  }
  return made;
}

std::string ClassName(v1::BottleneckClass bottleneck_class) {
  std::string name = v1::BottleneckClass_Name(bottleneck_class);
  name = std::string(absl::StripPrefix(name, "BOTTLENECK_CLASS_"));
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", "-"}});
}

std::string ClassTerm(v1::BottleneckClass bottleneck_class) {
  return absl::StrCat("class.", absl::StrReplaceAll(ClassName(bottleneck_class), {{"-", "_"}}));
}

}  // namespace solward::workflow
