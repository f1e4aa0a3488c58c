// Checks of a request, and what its statement adds to it. Internal to the
// Understand stage.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_UNDERSTAND_REQUEST_H_
#define SOLWARD_COORDINATOR_WORKFLOW_UNDERSTAND_REQUEST_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/workflow/knowledge.h"
#include "coordinator/workflow/statement.h"
#include "solward/v1/analysis.pb.h"

namespace solward::workflow::internal {

// Outcome lint, size caps and values, all at once: INVALID_ARGUMENT with every
// offending field.
absl::Status ValidateRequest(const v1::AnalysisRequest& request);

// Two sources say different things about `name`.
struct Conflict {
  std::string name;                 // "dtype", "flops_per_call", "M", "region"
  std::vector<std::string> values;  // as an answer would give them, the kept one first
  bool within_statement = false;
};

// Puts what the statement says into the fields the request leaves open.
std::vector<Conflict> MergeStatement(const StatementContent& content, const Knowledge& knowledge,
                                     v1::AnalysisRequest& request);

// "cuda_profiler_api", "profiler_step", "nvtx:NAME", "function:NAME" and back.
std::string RegionText(const v1::Region& region);
absl::Status ParseRegion(absl::string_view text, v1::Region& region);

}  // namespace solward::workflow::internal

#endif  // SOLWARD_COORDINATOR_WORKFLOW_UNDERSTAND_REQUEST_H_
