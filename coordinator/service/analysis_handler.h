// AnalysisHandler: what the calls of AnalysisService do, without any transport.
#ifndef SOLWARD_COORDINATOR_SERVICE_ANALYSIS_HANDLER_H_
#define SOLWARD_COORDINATOR_SERVICE_ANALYSIS_HANDLER_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/delegation/registry.h"
#include "coordinator/service/analysis_engine.h"
#include "coordinator/store/store.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"

namespace solward::service {

// Thread-safe. Calls may wait for the disk, VerifyReport also for specialists.
// A caller sees its own analyses; others are NOT_FOUND, as if they were not there.
class AnalysisHandler {
 public:
  // All must outlive the handler. `see_all`: callers who see every analysis.
  AnalysisHandler(store::Store& store, AnalysisEngine& engine, delegation::Registry& registry,
                  const workflow::Knowledge& knowledge, std::set<std::string> see_all);

  using Caller = const std::string&;
  absl::StatusOr<v1::SubmitAnalysisResponse> Submit(Caller, const v1::SubmitAnalysisRequest&);
  absl::StatusOr<v1::GetAnalysisResponse> Get(Caller, const v1::GetAnalysisRequest&);
  absl::StatusOr<v1::ListAnalysesResponse> List(Caller, const v1::ListAnalysesRequest&);
  absl::StatusOr<v1::CancelAnalysisResponse> Cancel(Caller, const v1::CancelAnalysisRequest&);
  absl::StatusOr<v1::AnswerQuestionsResponse> Answer(Caller, const v1::AnswerQuestionsRequest&);
  absl::StatusOr<v1::GetReportResponse> GetReport(Caller, const v1::GetReportRequest&);
  absl::StatusOr<v1::ListKernelsResponse> ListKernels(Caller, const v1::ListKernelsRequest&);
  absl::StatusOr<v1::ExplainMetricResponse> Explain(Caller, const v1::ExplainMetricRequest&);
  absl::StatusOr<v1::VerifyReportResponse> Verify(Caller, const v1::VerifyReportRequest&);
  absl::StatusOr<v1::ValidateAnalysisResponse> Validate(Caller, const v1::ValidateAnalysisRequest&);
  absl::StatusOr<v1::ListSpecialistsResponse> ListSpecialists() const;

  // The analysis when the caller may see it.
  absl::StatusOr<v1::Analysis> Visible(Caller caller, const std::string& analysis_id);

 private:
  // The report of an analysis that the caller may see; FAILED_PRECONDITION
  // (REPORT_NOT_READY) says what it is doing instead.
  absl::StatusOr<v1::Report> ReadReport(Caller caller, const std::string& analysis_id);
  absl::StatusOr<v1::RecomputeResponse> RecomputeAt(const std::string& instance,
                                                    const v1::RecomputeRequest& request);

  store::Store& store_;
  AnalysisEngine& engine_;
  delegation::Registry& registry_;
  const workflow::Knowledge& knowledge_;
  const std::set<std::string> see_all_;
};

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_ANALYSIS_HANDLER_H_
