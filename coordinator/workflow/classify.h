// Stage 5, Classify: which bottleneck, by shares that sum to 100 %. Works from
// the structured measurement alone (docs/time-model.md).
#ifndef SOLWARD_COORDINATOR_WORKFLOW_CLASSIFY_H_
#define SOLWARD_COORDINATOR_WORKFLOW_CLASSIFY_H_

#include "absl/status/statusor.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"
#include "solward/v1/report.pb.h"

namespace solward::workflow {

// Metrics made here (rescaled shares, recoverable shares, flip time) are in
// `Classification.metrics`, with keys that continue those of the measurement.
absl::StatusOr<v1::Classification> Classify(const v1::Measurement& measurement,
                                            const Knowledge& knowledge);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_CLASSIFY_H_
