// Computes every number of a report again: measured ones where their artifact
// is kept, derived ones by their formula, given ones from the request, printed
// ones from the tables.
#ifndef SOLWARD_COORDINATOR_SERVICE_REPORT_VERIFIER_H_
#define SOLWARD_COORDINATOR_SERVICE_REPORT_VERIFIER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"

namespace solward::service {

// Has the specialist of this instance compute measured metrics again.
using RecomputeAt = std::function<absl::StatusOr<v1::RecomputeResponse>(
    const std::string& instance, const v1::RecomputeRequest& request)>;

// `understanding` was made from the request anew. One verdict per metric of the
// report, in its order; a specialist that cannot be asked is a verdict too.
v1::VerifyReportResponse VerifyReport(const v1::Report& report,
                                      const v1::Understanding& understanding,
                                      const workflow::Knowledge& knowledge,
                                      const RecomputeAt& recompute_at);

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_REPORT_VERIFIER_H_
