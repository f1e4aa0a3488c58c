#include "coordinator/workflow/report.h"

#include <google/protobuf/util/time_util.h>

#include <ctime>

#include "common/status.h"
#include "coordinator/workflow/recommendations.h"
#include "coordinator/workflow/report_input.h"

namespace solward::workflow {

absl::StatusOr<v1::Report> MakeReport(const std::string& analysis_id,
                                      const v1::Understanding& understanding,
                                      const v1::Measurement& measurement,
                                      const v1::Classification& classification,
                                      const Knowledge& knowledge) {
  ReportInput input(understanding, measurement, classification, knowledge);
  v1::Report report;
  report.set_analysis_id(analysis_id);
  *report.mutable_created_time() =
      google::protobuf::util::TimeUtil::TimeTToTimestamp(std::time(nullptr));
  *report.mutable_captures() = measurement.captures();
  *report.mutable_environment() = measurement.environment();
  *report.mutable_artifacts() = measurement.artifacts();
  *report.mutable_summary() = MakeSummary(input);
  ASSIGN_OR_RETURN(*report.mutable_metrics(), MakeMetricsSection(input));
  *report.mutable_findings() = MakeFindings(input);
  ASSIGN_OR_RETURN(*report.mutable_recommendations(),
                   MakeRecommendations(BuiltInRecommendations(), report.findings(), input));
  *report.mutable_classification() = classification;
  // all_metrics has those that are referred to.
  report.mutable_classification()->clear_metrics();
  RETURN_IF_ERROR(RenameKeys(input, report));
  return report;
}

}  // namespace solward::workflow
