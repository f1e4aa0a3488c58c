// Stage 1, Understand: is the question answerable as it stands? Reads the
// statement, merges it with the structured fields (which win), computes FLOPs
// from dimensions, and asks typed questions when something needed is missing.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_UNDERSTAND_H_
#define SOLWARD_COORDINATOR_WORKFLOW_UNDERSTAND_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"

namespace solward::workflow {

// INVALID_ARGUMENT when the request is refused (outcome lint, sizes, unknown
// fields). Otherwise questions is empty exactly when the analysis can go on.
// `answers` are those given so far, in order; a wrong one is asked again.
absl::StatusOr<v1::Understanding> Understand(const v1::AnalysisRequest& request,
                                             const std::vector<v1::Answer>& answers,
                                             const Knowledge& knowledge);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_UNDERSTAND_H_
