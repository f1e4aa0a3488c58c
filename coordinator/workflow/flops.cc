#include "coordinator/workflow/flops.h"

#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/problem_context.h"
#include "common/status.h"

namespace solward::workflow {
namespace {

bool Has(const v1::Operation& operation, const std::string& name) {
  return operation.dimensions().count(name) > 0;
}

// Collects the inputs of a formula and what is missing of them.
class RecipeBuilder {
 public:
  RecipeBuilder(const v1::Operation& operation, const v1::ProblemContext& context)
      : operation_(operation), context_(context) {}

  FlopsRecipe Build() {
    switch (KindOf(operation_)) {
      case v1::OPERATION_KIND_GEMM:
      case v1::OPERATION_KIND_BATCHED_GEMM:
        Gemm();
        break;
      case v1::OPERATION_KIND_CONVOLUTION:
        Convolution();
        break;
      case v1::OPERATION_KIND_ATTENTION:
        Attention();
        break;
      case v1::OPERATION_KIND_TRANSFORMER_TRAINING:
        Transformer();
        break;
      default:
        return {};
    }
    if (operation_.backward() && !recipe_.per_step) recipe_.formula_id += "_with_backward";
    return std::move(recipe_);
  }

 private:
  void Need(const std::string& name, bool known, const std::string& ask) {
    recipe_.inputs.push_back(name);
    if (!known) recipe_.missing.push_back(ask);
  }
  void NeedDimension(const std::string& name) { Need(name, Has(operation_, name), name); }

  void Gemm() {
    const bool batched = KindOf(operation_) == v1::OPERATION_KIND_BATCHED_GEMM;
    recipe_.formula_id = batched ? "gemm_flops" : "plain_gemm_flops";
    if (batched) NeedDimension("B");
    for (const char* name : {"M", "N", "K"}) NeedDimension(name);
  }

  void Convolution() {
    const bool grouped = Has(operation_, "groups");
    recipe_.formula_id = grouped ? "convolution_flops" : "plain_convolution_flops";
    Need("N", Has(operation_, "N") || context_.has_batch_size(), "N");
    for (const char* name : {"C", "K", "R", "S"}) NeedDimension(name);
    if (grouped) NeedDimension("groups");
    for (const auto& [out, in] : {std::pair("P", "H"), {"Q", "W"}}) {
      recipe_.inputs.push_back(out);
      if (Has(operation_, out)) continue;
      // Nothing is assumed: no stride and no padding is not stride 1 and 0.
      for (const char* name : {in, "stride", "padding"}) {
        if (!Has(operation_, name)) AskOnce(name);
      }
      if (!DividesEvenly(in, out == std::string("P") ? "R" : "S")) AskOnce(out);
    }
  }

  void AskOnce(const std::string& name) {
    for (const std::string& asked : recipe_.missing) {
      if (asked == name) return;
    }
    recipe_.missing.push_back(name);
  }

  int64_t Dimension(const std::string& name, int64_t otherwise) const {
    const auto found = operation_.dimensions().find(name);
    return found == operation_.dimensions().end() ? otherwise : found->second;
  }

  // The output extent is whole, so that the formula needs no rounding.
  bool DividesEvenly(const std::string& extent, const std::string& kernel) const {
    const double stride = static_cast<double>(Dimension("stride", 1));
    const double steps = static_cast<double>(Dimension(extent, 1)) +
                         2.0 * static_cast<double>(Dimension("padding", 0)) -
                         static_cast<double>(Dimension("dilation", 1)) *
                             (static_cast<double>(Dimension(kernel, 1)) - 1) -
                         1;
    return steps >= 0 && std::fmod(steps, stride) == 0;
  }

  void Attention() {
    recipe_.formula_id = operation_.causal() ? "causal_attention_flops" : "attention_flops";
    Need("B", Has(operation_, "B") || context_.has_batch_size(), "B");
    NeedDimension("H");
    Need("S", Has(operation_, "S") || context_.has_sequence_length(), "S");
    recipe_.inputs.push_back("S_kv");  // S when it is not given
    NeedDimension("D");
  }

  void Transformer() {
    recipe_.formula_id = "transformer_training_flops";
    recipe_.per_step = true;
    Need("parameters", context_.has_parameters(), "parameters");
    Need("tokens",
         Has(operation_, "tokens") || (context_.has_batch_size() && context_.has_sequence_length()),
         "tokens");
  }

  const v1::Operation& operation_;
  const v1::ProblemContext& context_;
  FlopsRecipe recipe_;
};

// Makes the metrics of one context.
class ContextMetricsBuilder {
 public:
  ContextMetricsBuilder(const v1::ProblemContext& context, const MetricCatalogue& catalogue)
      : context_(context), catalogue_(catalogue) {}

  absl::StatusOr<MetricSet> Build() {
    RETURN_IF_ERROR(GiveFigures());
    for (int i = 0; i < context_.operations_size(); ++i) {
      const v1::Operation& operation = context_.operations(i);
      for (const auto& [name, value] : Sorted(operation))
        RETURN_IF_ERROR(Dimension(i, name).status());
      const FlopsRecipe recipe = RecipeOf(operation, context_);
      if (recipe.formula_id.empty() || !recipe.missing.empty()) continue;
      RETURN_IF_ERROR(DeriveFlops(i, recipe));
    }
    // After the derived ones: those come first.
    RETURN_IF_ERROR(GiveNumber("flops_per_call", context_.has_flops_per_call(),
                               context_.flops_per_call(), KernelScope("")));
    RETURN_IF_ERROR(GiveNumber("flops_per_step", context_.has_flops_per_step(),
                               context_.flops_per_step(), StepScope()));
    return std::move(set_);
  }

 private:
  static std::map<std::string, int64_t> Sorted(const v1::Operation& operation) {
    return {operation.dimensions().begin(), operation.dimensions().end()};
  }

  absl::Status GiveFigures() {
    struct Row {
      const char* id;
      bool has;
      const v1::GivenNumber& number;
      v1::Scope scope;
    };
    const Row rows[] = {
        {"batch_size", context_.has_batch_size(), context_.batch_size(), StepScope()},
        {"sequence_length", context_.has_sequence_length(), context_.sequence_length(),
         StepScope()},
        {"world_size", context_.has_world_size(), context_.world_size(), RunScope()},
        {"calls_per_step", context_.has_calls_per_step(), context_.calls_per_step(), StepScope()},
        {"parameters", context_.has_parameters(), context_.parameters(), RunScope()},
    };
    for (const Row& row : rows) {
      RETURN_IF_ERROR(GiveNumber(row.id, row.has, row.number, row.scope));
    }
    if (!context_.has_step_time()) return absl::OkStatus();
    v1::GivenNumber ns = context_.step_time();
    ns.set_value(ns.value() * 1e9);
    return GiveNumber("step_time", true, ns, StepScope());
  }

  absl::Status GiveNumber(absl::string_view id, bool has, const v1::GivenNumber& number,
                          v1::Scope scope) {
    if (!has) return absl::OkStatus();
    return Give(id, number.value(), std::move(scope),
                number.field().empty() ? absl::StrCat("context.", id) : number.field(),
                number.text())
        .status();
  }

  absl::StatusOr<const Metric*> Give(absl::string_view id, double value, v1::Scope scope,
                                     const std::string& field, const std::string& text) {
    v1::Given given;
    given.set_field(field);
    given.set_text(text);
    ASSIGN_OR_RETURN(Metric metric,
                     Metric::Give(catalogue_, id, value, std::move(scope), std::move(given)));
    return &set_.Add(std::move(metric));
  }

  absl::StatusOr<const Metric*> Derive(
      absl::string_view formula, v1::Scope scope,
      const std::vector<std::pair<std::string, const Metric*>>& in) {
    ASSIGN_OR_RETURN(Metric metric, Metric::Derive(catalogue_, formula, std::move(scope), in));
    return &set_.Add(std::move(metric));
  }

  v1::Scope DimensionScope(int index, const std::string& name) const {
    v1::Scope scope = RunScope();
    scope.set_name(index == 0 ? name : absl::StrCat(name, " of operation ", index + 1));
    return scope;
  }

  // A dimension of an operation, made once.
  absl::StatusOr<const Metric*> Dimension(int index, const std::string& name) {
    const v1::Scope scope = DimensionScope(index, name);
    if (const Metric* known = set_.Find("dimension", scope)) return known;
    const v1::Operation& operation = context_.operations(index);
    const bool stated = operation.field() == "statement";
    return Give("dimension", static_cast<double>(operation.dimensions().at(name)), scope,
                stated ? "statement" : "context.operations.dimensions",
                stated ? operation.text() : "");
  }

  // Output rows or columns of a convolution.
  absl::StatusOr<const Metric*> Extent(int index, const std::string& name) {
    const bool rows = name == "P";
    std::vector<std::pair<std::string, const Metric*>> in;
    const bool dilated = Has(context_.operations(index), "dilation");
    ASSIGN_OR_RETURN(const Metric* extent, Dimension(index, rows ? "H" : "W"));
    ASSIGN_OR_RETURN(const Metric* kernel, Dimension(index, rows ? "R" : "S"));
    ASSIGN_OR_RETURN(const Metric* stride, Dimension(index, "stride"));
    ASSIGN_OR_RETURN(const Metric* padding, Dimension(index, "padding"));
    in = {{"extent", extent}, {"kernel", kernel}, {"stride", stride}, {"padding", padding}};
    if (dilated) {
      ASSIGN_OR_RETURN(const Metric* dilation, Dimension(index, "dilation"));
      in.emplace_back("dilation", dilation);
    }
    return Derive(dilated ? "dilated_convolution_extent" : "convolution_extent",
                  DimensionScope(index, name), in);
  }

  // A figure of the context that stands for a dimension.
  const Metric* Figure(const char* id) const {
    const std::vector<const Metric*> all = set_.FindAll(id);
    return all.empty() ? nullptr : all.front();
  }

  absl::StatusOr<const Metric*> Input(int index, const std::string& name) {
    if (Has(context_.operations(index), name)) return Dimension(index, name);
    if (name == "P" || name == "Q") return Extent(index, name);
    if (name == "S_kv") return Input(index, "S");
    if (name == "S") return Figure("sequence_length");
    if (name == "B" || name == "N") return Figure("batch_size");
    if (name == "parameters") return Figure("parameters");
    if (name == "tokens") {
      return Derive("tokens_of_batch", DimensionScope(index, "tokens"),
                    {{"batch", Figure("batch_size")}, {"sequence", Figure("sequence_length")}});
    }
    return MakeError(absl::StatusCode::kInternal, "CONTEXT_INPUT_MISSING",
                     absl::StrCat("FLOPs: input ", name, ": expected a dimension, found none"));
  }

  absl::Status DeriveFlops(int index, const FlopsRecipe& recipe) {
    std::vector<std::pair<std::string, const Metric*>> inputs;
    for (const std::string& name : recipe.inputs) {
      ASSIGN_OR_RETURN(const Metric* metric, Input(index, name));
      inputs.emplace_back(name, metric);
    }
    const std::string of = index == 0 ? "" : absl::StrCat("operation ", index + 1);
    v1::Scope scope = recipe.per_step ? StepScope() : KernelScope(of);
    scope.set_name(of);
    return Derive(recipe.formula_id, std::move(scope), inputs).status();
  }

  const v1::ProblemContext& context_;
  const MetricCatalogue& catalogue_;
  MetricSet set_;
};

}  // namespace

v1::OperationKind KindOf(const v1::Operation& operation) {
  const v1::OperationKind told = KindOfDimensions(operation);
  if (operation.kind() == v1::OPERATION_KIND_UNSPECIFIED) return told;
  // A GEMM with B is a batched one.
  if (operation.kind() == v1::OPERATION_KIND_GEMM && told == v1::OPERATION_KIND_BATCHED_GEMM) {
    return told;
  }
  return operation.kind();
}

FlopsRecipe RecipeOf(const v1::Operation& operation, const v1::ProblemContext& context) {
  return RecipeBuilder(operation, context).Build();
}

absl::StatusOr<MetricSet> ContextMetrics(const v1::ProblemContext& context,
                                         const MetricCatalogue& catalogue) {
  return ContextMetricsBuilder(context, catalogue).Build();
}

std::optional<ComputedFlops> FlopsFromDimensions(const v1::ProblemContext& context,
                                                 const MetricCatalogue& catalogue) {
  if (context.operations().empty()) return std::nullopt;
  const FlopsRecipe recipe = RecipeOf(context.operations(0), context);
  if (recipe.formula_id.empty() || !recipe.missing.empty()) return std::nullopt;
  v1::ProblemContext alone = context;
  alone.clear_flops_per_call();
  alone.clear_flops_per_step();
  const absl::StatusOr<MetricSet> metrics = ContextMetrics(alone, catalogue);
  if (!metrics.ok()) return std::nullopt;
  const auto all = metrics->FindAll(recipe.per_step ? "flops_per_step" : "flops_per_call");
  if (all.empty()) return std::nullopt;
  return ComputedFlops{recipe.per_step, all.front()->value()};
}

}  // namespace solward::workflow
