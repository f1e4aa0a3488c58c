// FLOPs of an operation from its dimensions, and the problem context as
// metrics. Values are doubles: no product of dimensions can overflow.
//
//   FlopsRecipe recipe = RecipeOf(operation, context);
//   if (recipe.missing.empty()) ... catalogue formula recipe.formula_id
#ifndef SOLWARD_COORDINATOR_WORKFLOW_FLOPS_H_
#define SOLWARD_COORDINATOR_WORKFLOW_FLOPS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/metric.h"
#include "solward/v1/delegation.pb.h"

namespace solward::workflow {

// How the FLOPs of one operation are computed.
struct FlopsRecipe {
  std::string formula_id;            // empty when the kind is unknown
  bool per_step = false;             // gives flops_per_step, else flops_per_call
  std::vector<std::string> inputs;   // names of the formula, each a dimension or figure
  std::vector<std::string> missing;  // what the client has to give for it
};

// The kind of the operation, or what its dimensions tell when it has none.
v1::OperationKind KindOf(const v1::Operation& operation);

FlopsRecipe RecipeOf(const v1::Operation& operation, const v1::ProblemContext& context);

// Every figure of the context as a metric with its provenance, and the FLOPs
// of operations whose dimensions suffice, derived by the catalogue's formulas.
// The first "flops_per_call" (and "flops_per_step") is the one to use: derived
// from dimensions before given. A second operation's FLOPs carry "operation 2"
// as the scope's name. INVALID_ARGUMENT when a figure is not finite.
absl::StatusOr<MetricSet> ContextMetrics(const v1::ProblemContext& context,
                                         const MetricCatalogue& catalogue);

// FLOPs of the first operation from its dimensions alone; nullopt when they do
// not suffice.
struct ComputedFlops {
  bool per_step = false;
  double flops = 0;
};
std::optional<ComputedFlops> FlopsFromDimensions(const v1::ProblemContext& context,
                                                 const MetricCatalogue& catalogue);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_FLOPS_H_
