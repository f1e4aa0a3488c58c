// Stage 4, Measure: select the wanted metrics from the results, merge results
// by the catalogue's precedence, derive MFU, SOL and shares, list what is
// unmeasured, and turn disagreements between tools into findings.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_MEASURE_H_
#define SOLWARD_COORDINATOR_WORKFLOW_MEASURE_H_

#include "absl/status/statusor.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"

namespace solward::workflow {

// INTERNAL when a result carries a metric without valid provenance.
absl::StatusOr<v1::Measurement> Measure(const v1::Understanding& understanding,
                                        const v1::Evidence& evidence, const Knowledge& knowledge);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_MEASURE_H_
