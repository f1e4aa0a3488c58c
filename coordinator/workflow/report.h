// Stage 6, Report: four sections as structure. Built only from a classification.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_REPORT_H_
#define SOLWARD_COORDINATOR_WORKFLOW_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"
#include "solward/v1/report.pb.h"

namespace solward::workflow {

// Every number in the report is a metric of `Report.all_metrics`, keyed m1,
// m2, ... in order of first use. Deterministic but for `created_time`.
absl::StatusOr<v1::Report> MakeReport(const std::string& analysis_id,
                                      const v1::Understanding& understanding,
                                      const v1::Measurement& measurement,
                                      const v1::Classification& classification,
                                      const Knowledge& knowledge);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_REPORT_H_
