#include "coordinator/service/analysis_service.h"

#include <memory>
#include <string>
#include <utility>

#include "common/rpc_server.h"
#include "common/status.h"
#include "coordinator/service/artifact_proxy.h"
#include "coordinator/service/watch_reactor.h"

namespace solward::service {
namespace {

constexpr int kThreads = 4, kSlowThreads = 2;
constexpr size_t kMaxWaiting = 4096, kMaxSlowWaiting = 64;

// Runs `work` (caller -> StatusOr<Response>) on the pool and ends the call with
// what it gives.
template <typename Response, typename Work>
grpc::ServerUnaryReactor* Run(WorkPool& pool, grpc::CallbackServerContext* context,
                              Response* response, Work work) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const bool taken = pool.Post(
      [reactor, response, caller = RpcServer::CallerOf(*context), work = std::move(work)] {
        absl::StatusOr<Response> result = work(caller);
        const grpc::Status status = ToGrpcStatus(result.status());
        if (result.ok()) *response = *std::move(result);
        reactor->Finish(status);
      });
  if (!taken) {
    reactor->Finish(ToGrpcStatus(MakeError(absl::StatusCode::kResourceExhausted, "TOO_BUSY",
                                           "the coordinator is too busy; try again later")));
  }
  return reactor;
}

}  // namespace

AnalysisService::AnalysisService(AnalysisHandler& handler, store::Store& store, EventHub& hub,
                                 delegation::Registry& registry)
    : handler_(handler),
      store_(store),
      hub_(hub),
      registry_(registry),
      pool_(kThreads, kMaxWaiting),
      slow_pool_(kSlowThreads, kMaxSlowWaiting) {}

grpc::ServerUnaryReactor* AnalysisService::SubmitAnalysis(grpc::CallbackServerContext* context,
                                                          const v1::SubmitAnalysisRequest* request,
                                                          v1::SubmitAnalysisResponse* response) {
  return Run(pool_, context, response, [this, request](const std::string& caller) {
    return handler_.Submit(caller, *request);
  });
}

grpc::ServerUnaryReactor* AnalysisService::GetAnalysis(grpc::CallbackServerContext* context,
                                                       const v1::GetAnalysisRequest* request,
                                                       v1::GetAnalysisResponse* response) {
  return Run(pool_, context, response,
             [this, request](const std::string& caller) { return handler_.Get(caller, *request); });
}

grpc::ServerUnaryReactor* AnalysisService::ListAnalyses(grpc::CallbackServerContext* context,
                                                        const v1::ListAnalysesRequest* request,
                                                        v1::ListAnalysesResponse* response) {
  return Run(pool_, context, response, [this, request](const std::string& caller) {
    return handler_.List(caller, *request);
  });
}

grpc::ServerWriteReactor<v1::WatchAnalysisResponse>* AnalysisService::WatchAnalysis(
    grpc::CallbackServerContext* context, const v1::WatchAnalysisRequest* request) {
  const auto reactor = std::make_shared<WatchReactor>(store_, hub_, pool_, request->analysis_id(),
                                                      request->after_sequence());
  reactor->Open();
  const std::string caller = RpcServer::CallerOf(*context);
  const bool taken = pool_.Post([this, reactor, caller, request] {
    const absl::Status visible = handler_.Visible(caller, request->analysis_id()).status();
    if (visible.ok())
      reactor->Start();
    else
      reactor->Refuse(visible);
  });
  if (!taken) {
    reactor->Refuse(MakeError(absl::StatusCode::kResourceExhausted, "TOO_BUSY",
                              "the coordinator is too busy; try again later"));
  }
  return reactor.get();
}

grpc::ServerUnaryReactor* AnalysisService::CancelAnalysis(grpc::CallbackServerContext* context,
                                                          const v1::CancelAnalysisRequest* request,
                                                          v1::CancelAnalysisResponse* response) {
  return Run(pool_, context, response, [this, request](const std::string& caller) {
    return handler_.Cancel(caller, *request);
  });
}

grpc::ServerUnaryReactor* AnalysisService::AnswerQuestions(
    grpc::CallbackServerContext* context, const v1::AnswerQuestionsRequest* request,
    v1::AnswerQuestionsResponse* response) {
  return Run(pool_, context, response, [this, request](const std::string& caller) {
    return handler_.Answer(caller, *request);
  });
}

grpc::ServerUnaryReactor* AnalysisService::GetReport(grpc::CallbackServerContext* context,
                                                     const v1::GetReportRequest* request,
                                                     v1::GetReportResponse* response) {
  return Run(pool_, context, response, [this, request](const std::string& caller) {
    return handler_.GetReport(caller, *request);
  });
}

grpc::ServerUnaryReactor* AnalysisService::ListKernels(grpc::CallbackServerContext* context,
                                                       const v1::ListKernelsRequest* request,
                                                       v1::ListKernelsResponse* response) {
  return Run(pool_, context, response, [this, request](const std::string& caller) {
    return handler_.ListKernels(caller, *request);
  });
}

grpc::ServerUnaryReactor* AnalysisService::ExplainMetric(grpc::CallbackServerContext* context,
                                                         const v1::ExplainMetricRequest* request,
                                                         v1::ExplainMetricResponse* response) {
  return Run(pool_, context, response, [this, request](const std::string& caller) {
    return handler_.Explain(caller, *request);
  });
}

grpc::ServerUnaryReactor* AnalysisService::CompareAnalyses(grpc::CallbackServerContext* context,
                                                           const v1::CompareAnalysesRequest*,
                                                           v1::CompareAnalysesResponse*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(
      MakeError(absl::StatusCode::kUnimplemented, "COMPARISON_NOT_AVAILABLE",
                "comparing two analyses is not available in this version: it arrives with "
                "classification across runs; read both reports and compare their metrics")));
  return reactor;
}

grpc::ServerUnaryReactor* AnalysisService::VerifyReport(grpc::CallbackServerContext* context,
                                                        const v1::VerifyReportRequest* request,
                                                        v1::VerifyReportResponse* response) {
  return Run(slow_pool_, context, response, [this, request](const std::string& caller) {
    return handler_.Verify(caller, *request);
  });
}

grpc::ServerUnaryReactor* AnalysisService::ValidateAnalysis(
    grpc::CallbackServerContext* context, const v1::ValidateAnalysisRequest* request,
    v1::ValidateAnalysisResponse* response) {
  return Run(pool_, context, response, [this, request](const std::string& caller) {
    return handler_.Validate(caller, *request);
  });
}

grpc::ServerUnaryReactor* AnalysisService::ListSpecialists(grpc::CallbackServerContext* context,
                                                           const v1::ListSpecialistsRequest*,
                                                           v1::ListSpecialistsResponse* response) {
  return Run(pool_, context, response,
             [this](const std::string&) { return handler_.ListSpecialists(); });
}

grpc::ServerReadReactor<v1::UploadCaptureRequest>* AnalysisService::UploadCapture(
    grpc::CallbackServerContext* context, v1::UploadCaptureResponse* response) {
  return ForwardUpload(context, registry_, response);
}

grpc::ServerWriteReactor<v1::DownloadArtifactResponse>* AnalysisService::DownloadArtifact(
    grpc::CallbackServerContext* context, const v1::DownloadArtifactRequest* request) {
  return ForwardDownload(context, registry_, *request);
}

}  // namespace solward::service
