// The metric catalogue (config/metrics.yaml) is part of the contract: which
// metrics exist, their unit, default scope, formula, tolerance and words.
#ifndef SOLWARD_COMMON_METRIC_CATALOGUE_H_
#define SOLWARD_COMMON_METRIC_CATALOGUE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "solward/v1/metric.pb.h"

namespace solward {

// One entry of config/metrics.yaml.
struct MetricDefinition {
  std::string id;
  std::string unit;  // UCUM-style; values are always in this unit
  v1::ScopeKind default_scope = v1::SCOPE_KIND_UNSPECIFIED;
  std::string name_en, name_fr;       // how a report calls it
  std::string definition;             // what it is, in one sentence
  std::string source;                 // where the definition comes from
  std::vector<std::string> synonyms;  // words of a statement, both languages, lower case
  // Largest relative difference between two tools that is not a finding.
  double tolerance = 0.05;
  // Reports print `decimals` digits after the point, after scaling to the
  // largest SI prefix that leaves the number at least 1 when si is set
  // (FormatQuantity in common/units.h).
  bool si = false;
  int decimals = 1;
};

// A formula over named inputs: "flops / (time * 1e-9) / peak * 100". Grammar:
// numbers, names, + - * / ( ) min(a,b) max(a,b). Never touches anything else.
struct FormulaDefinition {
  std::string id;
  std::string metric_id;  // catalogue id of what it gives
  std::string expression;
  std::vector<std::string> inputs;  // names used, in order of appearance
  std::string source;
};

// A wanted metric that stands for several ("sol" asks for four).
struct MetricGroup {
  std::string id;
  std::vector<std::string> metric_ids;
  std::vector<std::string> synonyms;
};

// Immutable after Parse; safe to share between threads.
class MetricCatalogue {
 public:
  // Parses the text of config/metrics.yaml. INVALID_ARGUMENT names the entry
  // and what is wrong with it.
  static absl::StatusOr<MetricCatalogue> Parse(absl::string_view yaml);

  // nullptr when unknown. Pointers live as long as the catalogue.
  const MetricDefinition* Find(absl::string_view id) const;
  const FormulaDefinition* FindFormula(absl::string_view id) const;
  const MetricGroup* FindGroup(absl::string_view id) const;

  const std::vector<MetricDefinition>& metrics() const { return metrics_; }
  const std::vector<FormulaDefinition>& formulas() const { return formulas_; }
  const std::vector<MetricGroup>& groups() const { return groups_; }

  // Tools in order of precedence, most trusted first.
  const std::vector<std::string>& tool_precedence() const { return tool_precedence_; }

  // Ids (of metrics or groups) an analysis looks for when the client names none.
  const std::vector<std::string>& default_metrics() const { return default_metrics_; }

  // Ids of `id` itself or of the group it names; empty when unknown.
  std::vector<std::string> Expand(absl::string_view id) const;

 private:
  std::vector<MetricDefinition> metrics_;
  std::vector<FormulaDefinition> formulas_;
  std::vector<MetricGroup> groups_;
  std::vector<std::string> tool_precedence_;
  std::vector<std::string> default_metrics_;
  std::map<std::string, size_t, std::less<>> metric_index_, formula_index_, group_index_;
};

// Evaluates an expression of the formula grammar, at most 4096 characters and 64
// nested parentheses. INVALID_ARGUMENT on a syntax error or an unknown name,
// FAILED_PRECONDITION when the result or a step to it is not finite (a division
// by zero inside min() too, as in any other language that recomputes it).
absl::StatusOr<double> EvaluateFormula(absl::string_view expression,
                                       const std::map<std::string, double, std::less<>>& inputs);

// The names an expression uses, in order of first appearance.
absl::StatusOr<std::vector<std::string>> FormulaInputs(absl::string_view expression);

// The catalogue compiled into the program (config/metrics.yaml of the build).
const MetricCatalogue& BuiltInCatalogue();

}  // namespace solward

#endif  // SOLWARD_COMMON_METRIC_CATALOGUE_H_
