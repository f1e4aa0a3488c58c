// Stage 2, Plan: which outcome-only delegations answer the question.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_PLAN_H_
#define SOLWARD_COORDINATOR_WORKFLOW_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"

namespace solward::workflow {

// Keys of the delegations are derived from `analysis_id`, so that a plan made
// again asks for the same delegations.
absl::StatusOr<v1::Plan> MakePlan(const v1::Understanding& understanding,
                                  const std::string& analysis_id, const Knowledge& knowledge);

// Second wave after a verdict: the CUDA graph specialist on launch-overhead.
// Empty when nothing more is to be asked.
std::vector<v1::PlannedDelegation> PlanSecondWave(const v1::Plan& plan,
                                                  const v1::Measurement& measurement,
                                                  const v1::Classification& classification,
                                                  const std::string& analysis_id);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_PLAN_H_
