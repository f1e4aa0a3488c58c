// AnalysisService over gRPC: finds out who calls and hands over to the handler.
#ifndef SOLWARD_COORDINATOR_SERVICE_ANALYSIS_SERVICE_H_
#define SOLWARD_COORDINATOR_SERVICE_ANALYSIS_SERVICE_H_

#include "coordinator/delegation/registry.h"
#include "coordinator/service/analysis_handler.h"
#include "coordinator/service/event_hub.h"
#include "coordinator/service/work_pool.h"
#include "coordinator/store/store.h"
#include "solward/v1/analysis.grpc.pb.h"

namespace solward::service {

// Thread-safe. No gRPC thread waits for the disk or for another server: that is
// done by the pools.
class AnalysisService : public v1::AnalysisService::CallbackService {
 public:
  // All must outlive the service.
  AnalysisService(AnalysisHandler& handler, store::Store& store, EventHub& hub,
                  delegation::Registry& registry);

  grpc::ServerUnaryReactor* SubmitAnalysis(grpc::CallbackServerContext*,
                                           const v1::SubmitAnalysisRequest*,
                                           v1::SubmitAnalysisResponse*) override;
  grpc::ServerUnaryReactor* GetAnalysis(grpc::CallbackServerContext*, const v1::GetAnalysisRequest*,
                                        v1::GetAnalysisResponse*) override;
  grpc::ServerUnaryReactor* ListAnalyses(grpc::CallbackServerContext*,
                                         const v1::ListAnalysesRequest*,
                                         v1::ListAnalysesResponse*) override;
  grpc::ServerWriteReactor<v1::WatchAnalysisResponse>* WatchAnalysis(
      grpc::CallbackServerContext*, const v1::WatchAnalysisRequest*) override;
  grpc::ServerUnaryReactor* CancelAnalysis(grpc::CallbackServerContext*,
                                           const v1::CancelAnalysisRequest*,
                                           v1::CancelAnalysisResponse*) override;
  grpc::ServerUnaryReactor* AnswerQuestions(grpc::CallbackServerContext*,
                                            const v1::AnswerQuestionsRequest*,
                                            v1::AnswerQuestionsResponse*) override;
  grpc::ServerUnaryReactor* GetReport(grpc::CallbackServerContext*, const v1::GetReportRequest*,
                                      v1::GetReportResponse*) override;
  grpc::ServerUnaryReactor* ListKernels(grpc::CallbackServerContext*, const v1::ListKernelsRequest*,
                                        v1::ListKernelsResponse*) override;
  grpc::ServerUnaryReactor* ExplainMetric(grpc::CallbackServerContext*,
                                          const v1::ExplainMetricRequest*,
                                          v1::ExplainMetricResponse*) override;
  grpc::ServerUnaryReactor* CompareAnalyses(grpc::CallbackServerContext*,
                                            const v1::CompareAnalysesRequest*,
                                            v1::CompareAnalysesResponse*) override;
  grpc::ServerUnaryReactor* VerifyReport(grpc::CallbackServerContext*,
                                         const v1::VerifyReportRequest*,
                                         v1::VerifyReportResponse*) override;
  grpc::ServerUnaryReactor* ValidateAnalysis(grpc::CallbackServerContext*,
                                             const v1::ValidateAnalysisRequest*,
                                             v1::ValidateAnalysisResponse*) override;
  grpc::ServerUnaryReactor* ListSpecialists(grpc::CallbackServerContext*,
                                            const v1::ListSpecialistsRequest*,
                                            v1::ListSpecialistsResponse*) override;
  grpc::ServerReadReactor<v1::UploadCaptureRequest>* UploadCapture(
      grpc::CallbackServerContext*, v1::UploadCaptureResponse*) override;
  grpc::ServerWriteReactor<v1::DownloadArtifactResponse>* DownloadArtifact(
      grpc::CallbackServerContext*, const v1::DownloadArtifactRequest*) override;

 private:
  AnalysisHandler& handler_;
  store::Store& store_;
  EventHub& hub_;
  delegation::Registry& registry_;
  WorkPool pool_;
  // VerifyReport waits for specialists: it must not hold up the others.
  WorkPool slow_pool_;
};

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_ANALYSIS_SERVICE_H_
