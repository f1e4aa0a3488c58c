#include "common/metric.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"

namespace solward {
namespace {

absl::Status MetricError(absl::string_view id, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "METRIC_INVALID",
                   absl::StrCat("metric \"", id, "\": ", what));
}

v1::Scope MakeScope(v1::ScopeKind kind, int device, int rank, absl::string_view name = "") {
  v1::Scope scope;
  scope.set_kind(kind);
  scope.set_device(device);
  scope.set_rank(rank);
  scope.set_name(std::string(name));
  return scope;
}

absl::Status CheckRows(absl::string_view id, const v1::RowSelection& rows) {
  if (rows.table().empty()) return MetricError(id, "measured: expected the table of the rows");
  for (const v1::RowRange& range : rows.ranges()) {
    if (range.first() > range.last()) {
      return MetricError(id, absl::StrCat("measured: rows ", range.first(), " to ", range.last(),
                                          ": expected first <= last"));
    }
  }
  for (const v1::RowCondition& condition : rows.conditions()) {
    if (condition.column().empty()) {
      return MetricError(id, "measured: expected the column of a condition");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMeasured(absl::string_view id, const v1::Measured& measured) {
  if (measured.tool().empty()) return MetricError(id, "measured: expected the tool");
  if (measured.artifact_id().empty()) return MetricError(id, "measured: expected the artifact");
  if (measured.raw_name().empty()) return MetricError(id, "measured: expected the tool's own name");
  RETURN_IF_ERROR(CheckRows(id, measured.rows()));
  if (measured.aggregation() == v1::AGGREGATION_UNSPECIFIED ||
      !v1::Aggregation_IsValid(measured.aggregation())) {
    return MetricError(id, "measured: expected how the rows were combined (aggregation)");
  }
  if (!std::isfinite(measured.unit_scale())) {
    return MetricError(id, "measured: expected a finite unit scale");
  }
  const v1::Spread& spread = measured.spread();
  if (!std::isfinite(spread.min()) || !std::isfinite(spread.max()) ||
      !std::isfinite(spread.stddev())) {
    return MetricError(id, "measured: expected a finite spread");
  }
  return absl::OkStatus();
}

// A formula of the catalogue that gives this metric, with exactly its inputs.
absl::Status CheckDerived(const MetricCatalogue& catalogue, absl::string_view id,
                          const v1::Derived& derived) {
  const FormulaDefinition* formula = catalogue.FindFormula(derived.formula_id());
  if (formula == nullptr) {
    return MetricError(id, absl::StrCat("derived: unknown formula \"", derived.formula_id(), "\""));
  }
  if (formula->metric_id != id) {
    return MetricError(id, absl::StrCat("derived: formula \"", formula->id, "\" gives \"",
                                        formula->metric_id, "\""));
  }
  std::set<std::string> names;
  for (const v1::DerivedInput& input : derived.inputs()) {
    if (input.metric_key().empty()) {
      return MetricError(id, absl::StrCat("derived: input \"", input.name(), "\" has no metric"));
    }
    names.insert(input.name());
  }
  const std::set<std::string> expected(formula->inputs.begin(), formula->inputs.end());
  if (names != expected || static_cast<size_t>(derived.inputs_size()) != expected.size()) {
    return MetricError(
        id, absl::StrCat("derived: formula \"", formula->id, "\": expected inputs ",
                         absl::StrJoin(expected, ", "), ", found ", absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

absl::Status CheckProvenance(const MetricCatalogue& catalogue, absl::string_view id,
                             const v1::Provenance& provenance) {
  switch (provenance.source_case()) {
    case v1::Provenance::kMeasured:
      return CheckMeasured(id, provenance.measured());
    case v1::Provenance::kDerived:
      return CheckDerived(catalogue, id, provenance.derived());
    case v1::Provenance::kGiven:
      if (provenance.given().field().empty()) {
        return MetricError(id, "given: expected the field of the request");
      }
      return absl::OkStatus();
    case v1::Provenance::kReference:
      if (provenance.reference().table().empty() || provenance.reference().row().empty()) {
        return MetricError(id, "reference: expected table and row");
      }
      return absl::OkStatus();
    case v1::Provenance::SOURCE_NOT_SET:
      break;
  }
  return MetricError(id, "expected a provenance, found none");
}

absl::Status Check(const MetricCatalogue& catalogue, const v1::Metric& metric) {
  const MetricDefinition* definition = catalogue.Find(metric.id());
  if (definition == nullptr) return MetricError(metric.id(), "not in the metric catalogue");
  if (metric.unit() != definition->unit) {
    return MetricError(metric.id(), absl::StrCat("expected unit \"", definition->unit,
                                                 "\", found \"", metric.unit(), "\""));
  }
  if (!std::isfinite(metric.value())) return MetricError(metric.id(), "expected a finite value");
  if (metric.scope().kind() == v1::SCOPE_KIND_UNSPECIFIED ||
      !v1::ScopeKind_IsValid(metric.scope().kind())) {
    return MetricError(metric.id(), "expected a scope, found none");
  }
  return CheckProvenance(catalogue, metric.id(), metric.provenance());
}

v1::Metric Assemble(const MetricCatalogue& catalogue, absl::string_view id, double value,
                    v1::Scope scope) {
  v1::Metric metric;
  metric.set_id(std::string(id));
  metric.set_value(value);
  if (const MetricDefinition* definition = catalogue.Find(id)) metric.set_unit(definition->unit);
  *metric.mutable_scope() = std::move(scope);
  return metric;
}

// Two evaluations of one formula on one machine are equal; across machines the
// last bits may not be.
bool Agrees(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

// The metrics of one message, each derived one after its inputs.
class MergeOrder {
 public:
  explicit MergeOrder(const std::vector<v1::Metric>& metrics) : metrics_(metrics) {}

  // Indexes in an order in which inputs come first, otherwise as given.
  absl::StatusOr<std::vector<size_t>> Sort() {
    for (size_t i = 0; i < metrics_.size(); ++i) {
      if (metrics_[i].key().empty()) return MetricError(metrics_[i].id(), "expected a key");
      if (!index_.emplace(metrics_[i].key(), i).second) {
        return MetricError(metrics_[i].id(),
                           absl::StrCat("key \"", metrics_[i].key(), "\" stands there twice"));
      }
    }
    state_.assign(metrics_.size(), State::kNew);
    for (size_t i = 0; i < metrics_.size(); ++i) RETURN_IF_ERROR(Visit(i));
    return std::move(order_);
  }

 private:
  enum class State { kNew, kOpen, kDone };
  struct Frame {
    size_t metric;
    int next_input;
  };

  // Depth first with a stack of our own: a chain may be as long as a message.
  absl::Status Visit(size_t start) {
    if (state_[start] == State::kDone) return absl::OkStatus();
    std::vector<Frame> stack = {{start, 0}};
    state_[start] = State::kOpen;
    while (!stack.empty()) {
      Frame& top = stack.back();
      const auto& inputs = metrics_[top.metric].provenance().derived().inputs();
      if (top.next_input == inputs.size()) {
        state_[top.metric] = State::kDone;
        order_.push_back(top.metric);
        stack.pop_back();
        continue;
      }
      ASSIGN_OR_RETURN(const size_t input, IndexOf(top.metric, inputs[top.next_input++]));
      if (state_[input] == State::kOpen) {
        return MetricError(metrics_[input].id(), absl::StrCat("key \"", metrics_[input].key(),
                                                              "\" is derived from itself"));
      }
      if (state_[input] == State::kDone) continue;
      state_[input] = State::kOpen;
      stack.push_back({input, 0});
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> IndexOf(size_t metric, const v1::DerivedInput& input) const {
    const auto found = index_.find(input.metric_key());
    if (found != index_.end()) return found->second;
    return MetricError(metrics_[metric].id(),
                       absl::StrCat("derived: input \"", input.name(), "\": no metric has key \"",
                                    input.metric_key(), "\""));
  }

  const std::vector<v1::Metric>& metrics_;
  std::map<std::string, size_t> index_;
  std::vector<State> state_;
  std::vector<size_t> order_;
};

// A derived value is what its formula gives, not what the sender says it is.
absl::Status CheckDerivedValue(const MetricCatalogue& catalogue, const v1::Metric& metric,
                               const std::map<std::string, double>& values) {
  if (!metric.provenance().has_derived()) return absl::OkStatus();
  const v1::Derived& derived = metric.provenance().derived();
  std::map<std::string, double, std::less<>> inputs;
  for (const v1::DerivedInput& input : derived.inputs()) {
    inputs[input.name()] = values.at(input.metric_key());
  }
  const FormulaDefinition* formula = catalogue.FindFormula(derived.formula_id());
  const absl::StatusOr<double> value = EvaluateFormula(formula->expression, inputs);
  if (!value.ok()) return MetricError(metric.id(), value.status().message());
  if (Agrees(*value, metric.value())) return absl::OkStatus();
  return MetricError(metric.id(), absl::StrCat("derived: formula \"", formula->id, "\" gives ",
                                               *value, ", found ", metric.value()));
}

}  // namespace

v1::Scope RunScope(int device, int rank) { return MakeScope(v1::SCOPE_KIND_RUN, device, rank); }

v1::Scope StepScope(int device, int rank) { return MakeScope(v1::SCOPE_KIND_STEP, device, rank); }

v1::Scope KernelScope(absl::string_view kernel, int device, int rank) {
  return MakeScope(v1::SCOPE_KIND_KERNEL, device, rank, kernel);
}

v1::Scope DeviceScope(int device) { return MakeScope(v1::SCOPE_KIND_DEVICE, device, -1); }

bool SameScope(const v1::Scope& a, const v1::Scope& b) {
  return a.kind() == b.kind() && a.device() == b.device() && a.rank() == b.rank() &&
         a.name() == b.name();
}

absl::StatusOr<Metric> Metric::Measure(const MetricCatalogue& catalogue, absl::string_view id,
                                       double value, v1::Scope scope, v1::Measured provenance) {
  v1::Metric metric = Assemble(catalogue, id, value, std::move(scope));
  *metric.mutable_provenance()->mutable_measured() = std::move(provenance);
  return FromProto(catalogue, std::move(metric));
}

absl::StatusOr<Metric> Metric::Give(const MetricCatalogue& catalogue, absl::string_view id,
                                    double value, v1::Scope scope, v1::Given provenance) {
  v1::Metric metric = Assemble(catalogue, id, value, std::move(scope));
  *metric.mutable_provenance()->mutable_given() = std::move(provenance);
  return FromProto(catalogue, std::move(metric));
}

absl::StatusOr<Metric> Metric::Refer(const MetricCatalogue& catalogue, absl::string_view id,
                                     double value, v1::Scope scope, v1::Reference provenance) {
  v1::Metric metric = Assemble(catalogue, id, value, std::move(scope));
  *metric.mutable_provenance()->mutable_reference() = std::move(provenance);
  return FromProto(catalogue, std::move(metric));
}

absl::StatusOr<Metric> Metric::Derive(
    const MetricCatalogue& catalogue, absl::string_view formula_id, v1::Scope scope,
    const std::vector<std::pair<std::string, const Metric*>>& inputs) {
  const FormulaDefinition* formula = catalogue.FindFormula(formula_id);
  if (formula == nullptr) {
    return MakeError(absl::StatusCode::kInvalidArgument, "METRIC_INVALID",
                     absl::StrCat("formula \"", formula_id, "\": not in the metric catalogue"));
  }
  v1::Derived derived;
  derived.set_formula_id(formula->id);
  std::map<std::string, double, std::less<>> values;
  for (const auto& [name, metric] : inputs) {
    if (metric == nullptr || metric->key().empty()) {
      return MetricError(formula->metric_id,
                         absl::StrCat("derived: input \"", name, "\": expected a metric of a set"));
    }
    v1::DerivedInput* input = derived.add_inputs();
    input->set_name(name);
    input->set_metric_key(metric->key());
    values[name] = metric->value();
  }
  RETURN_IF_ERROR(CheckDerived(catalogue, formula->metric_id, derived));
  const absl::StatusOr<double> value = EvaluateFormula(formula->expression, values);
  if (!value.ok()) {
    return Annotate(value.status(), absl::StrCat("metric \"", formula->metric_id, "\""));
  }
  v1::Metric metric = Assemble(catalogue, formula->metric_id, *value, std::move(scope));
  *metric.mutable_provenance()->mutable_derived() = std::move(derived);
  return FromProto(catalogue, std::move(metric));
}

absl::StatusOr<Metric> Metric::FromProto(const MetricCatalogue& catalogue, v1::Metric proto) {
  RETURN_IF_ERROR(Check(catalogue, proto));
  return Metric(std::move(proto));
}

const Metric& MetricSet::Add(Metric metric) {
  metric.proto_.set_key(absl::StrCat("m", next_key_++));
  const Metric& added = metrics_.emplace_back(std::move(metric));
  by_key_[added.key()] = &added;
  by_id_[added.id()].push_back(&added);
  return added;
}

absl::StatusOr<std::map<std::string, std::string>> MetricSet::Merge(
    const MetricCatalogue& catalogue,
    const google::protobuf::RepeatedPtrField<v1::Metric>& metrics) {
  std::vector<v1::Metric> incoming(metrics.begin(), metrics.end());
  for (const v1::Metric& metric : incoming) RETURN_IF_ERROR(Check(catalogue, metric));
  ASSIGN_OR_RETURN(const std::vector<size_t> order, MergeOrder(incoming).Sort());
  std::map<std::string, double> values;
  for (const v1::Metric& metric : incoming) values[metric.key()] = metric.value();
  for (const v1::Metric& metric : incoming) {
    RETURN_IF_ERROR(CheckDerivedValue(catalogue, metric, values));
  }

  // From here on nothing fails.
  std::map<std::string, std::string> keys;
  for (const size_t i : order) {
    v1::Metric& metric = incoming[i];
    const std::string old_key = metric.key();
    if (metric.provenance().has_derived()) {
      for (v1::DerivedInput& input :
           *metric.mutable_provenance()->mutable_derived()->mutable_inputs()) {
        input.set_metric_key(keys.at(input.metric_key()));
      }
    }
    keys[old_key] = Add(Metric(std::move(metric))).key();
  }
  return keys;
}

const Metric* MetricSet::FindKey(absl::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

const Metric* MetricSet::Find(absl::string_view id, const v1::Scope& scope) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return nullptr;
  for (const Metric* metric : found->second) {
    if (SameScope(metric->scope(), scope)) return metric;
  }
  return nullptr;
}

std::vector<const Metric*> MetricSet::FindAll(absl::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? std::vector<const Metric*>() : found->second;
}

}  // namespace solward
