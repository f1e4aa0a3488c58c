#include "coordinator/service/analysis_handler.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status.h"
#include "coordinator/service/list_filter.h"
#include "coordinator/service/report_queries.h"
#include "coordinator/service/report_verifier.h"
#include "coordinator/service/request_limits.h"
#include "coordinator/workflow/plan.h"
#include "coordinator/workflow/understand.h"
#include "google/protobuf/util/time_util.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::service {
namespace {

constexpr absl::Duration kRecomputeDeadline = absl::Minutes(2);
// A page ends early rather than grow beyond what clients take by default.
constexpr size_t kMaxPageBytes = 2 << 20;

absl::Status NotFound(const std::string& analysis_id) {
  return MakeError(absl::StatusCode::kNotFound, "ANALYSIS_NOT_FOUND",
                   absl::StrCat("analysis '", analysis_id,
                                "': not known; list the analyses to "
                                "see which ids exist"));
}

absl::Status NotReady(const v1::Analysis& analysis) {
  std::string what = absl::StrCat("analysis ", analysis.id(), ": has no report, it ");
  switch (analysis.state()) {
    case v1::ANALYSIS_STATE_FAILED:
      absl::StrAppend(&what, "failed in ", StageName(analysis.stage()), ": ",
                      analysis.error().message());
      break;
    case v1::ANALYSIS_STATE_CANCELLED:
      absl::StrAppend(&what, "was cancelled");
      break;
    case v1::ANALYSIS_STATE_INPUT_REQUIRED:
      absl::StrAppend(&what, "waits for answers to ", analysis.questions_size(), " questions");
      break;
    default:
      absl::StrAppend(&what, "is ", StateName(analysis.state()), " in ",
                      StageName(analysis.stage()), "; watch it until it ends");
  }
  const bool waits = analysis.state() == v1::ANALYSIS_STATE_INPUT_REQUIRED;
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   waits ? "INPUT_REQUIRED" : "REPORT_NOT_READY", what);
}

store::ListPosition PositionOf(const v1::Analysis& analysis) {
  return {google::protobuf::util::TimeUtil::TimestampToNanoseconds(analysis.submit_time()),
          analysis.id()};
}

// Puts the page into the response: what a list needs, no more than a message takes.
void FillPage(store::ListResult page, const std::string& scope,
              v1::ListAnalysesResponse& response) {
  size_t bytes = 0;
  for (v1::Analysis& analysis : page.analyses) {
    analysis.clear_plan();
    bytes += analysis.ByteSizeLong();
    if (bytes > kMaxPageBytes && response.analyses_size() > 0) {
      page.next = PositionOf(response.analyses(response.analyses_size() - 1));
      break;
    }
    *response.add_analyses() = std::move(analysis);
  }
  response.set_total(page.total);
  if (page.next.has_value()) {
    response.set_next_page_token(MakePageToken(scope, EncodePosition(*page.next)));
  }
}

}  // namespace

AnalysisHandler::AnalysisHandler(store::Store& store, AnalysisEngine& engine,
                                 delegation::Registry& registry,
                                 const workflow::Knowledge& knowledge,
                                 std::set<std::string> see_all)
    : store_(store),
      engine_(engine),
      registry_(registry),
      knowledge_(knowledge),
      see_all_(std::move(see_all)) {}

absl::StatusOr<v1::SubmitAnalysisResponse> AnalysisHandler::Submit(
    Caller caller, const v1::SubmitAnalysisRequest& request) {
  RETURN_IF_ERROR(CheckKey(request.key()));
  RETURN_IF_ERROR(CheckRequestSizes(request.request()));
  ASSIGN_OR_RETURN(store::Created created,
                   engine_.Submit(caller, request.key(), request.request()));
  v1::SubmitAnalysisResponse response;
  *response.mutable_analysis() = std::move(created.analysis);
  response.set_existed(created.existed);
  return response;
}

absl::StatusOr<v1::Analysis> AnalysisHandler::Visible(Caller caller,
                                                      const std::string& analysis_id) {
  if (analysis_id.empty()) {
    return MakeBadRequest("ANALYSIS_ID_MISSING", "analysis_id: expected, found none",
                          {{"analysis_id", "the id of an analysis expected"}});
  }
  ASSIGN_OR_RETURN(v1::Analysis analysis, store_.Get(analysis_id));
  // The same answer as for one that does not exist: an id must not be a hint.
  if (analysis.caller() != caller && !see_all_.contains(caller)) return NotFound(analysis_id);
  return analysis;
}

absl::StatusOr<v1::GetAnalysisResponse> AnalysisHandler::Get(
    Caller caller, const v1::GetAnalysisRequest& request) {
  v1::GetAnalysisResponse response;
  ASSIGN_OR_RETURN(*response.mutable_analysis(), Visible(caller, request.analysis_id()));
  return response;
}

absl::StatusOr<v1::ListAnalysesResponse> AnalysisHandler::List(
    Caller caller, const v1::ListAnalysesRequest& request) {
  ASSIGN_OR_RETURN(store::ListQuery query, ParseListFilter(request.filter()));
  ASSIGN_OR_RETURN(query.limit, CheckPageSize(request.page_size()));
  if (!see_all_.contains(caller)) query.caller = caller;
  const std::string scope = absl::StrCat("analyses of ", caller, " with ", request.filter());
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(const std::string payload, ReadPageToken(scope, request.page_token()));
    ASSIGN_OR_RETURN(query.after, DecodePosition(payload));
  }
  ASSIGN_OR_RETURN(store::ListResult page, store_.List(query));
  v1::ListAnalysesResponse response;
  FillPage(std::move(page), scope, response);
  return response;
}

absl::StatusOr<v1::CancelAnalysisResponse> AnalysisHandler::Cancel(
    Caller caller, const v1::CancelAnalysisRequest& request) {
  RETURN_IF_ERROR(Visible(caller, request.analysis_id()).status());
  ASSIGN_OR_RETURN(CancelResult result, engine_.Cancel(request.analysis_id()));
  v1::CancelAnalysisResponse response;
  response.set_outcome(result.outcome);
  *response.mutable_analysis() = std::move(result.analysis);
  return response;
}

absl::StatusOr<v1::AnswerQuestionsResponse> AnalysisHandler::Answer(
    Caller caller, const v1::AnswerQuestionsRequest& request) {
  RETURN_IF_ERROR(CheckAnswerSizes(request));
  RETURN_IF_ERROR(Visible(caller, request.analysis_id()).status());
  v1::AnswerQuestionsResponse response;
  ASSIGN_OR_RETURN(
      *response.mutable_analysis(),
      engine_.Answer(request.analysis_id(), {request.answers().begin(), request.answers().end()}));
  return response;
}

absl::StatusOr<v1::Report> AnalysisHandler::ReadReport(Caller caller,
                                                       const std::string& analysis_id) {
  ASSIGN_OR_RETURN(const v1::Analysis analysis, Visible(caller, analysis_id));
  ASSIGN_OR_RETURN(auto report,
                   LoadDocument<v1::Report>(store_, analysis_id, store::Document::kReport));
  if (!report.has_value()) return NotReady(analysis);
  return *std::move(report);
}

absl::StatusOr<v1::GetReportResponse> AnalysisHandler::GetReport(
    Caller caller, const v1::GetReportRequest& request) {
  v1::GetReportResponse response;
  ASSIGN_OR_RETURN(*response.mutable_report(), ReadReport(caller, request.analysis_id()));
  std::optional<store::Document> rendering;
  switch (request.format()) {
    case v1::REPORT_FORMAT_UNSPECIFIED:
      return response;
    case v1::REPORT_FORMAT_MARKDOWN:
      rendering = request.language() == v1::REPORT_LANGUAGE_FRENCH
                      ? store::Document::kReportMarkdownFrench
                      : store::Document::kReportMarkdownEnglish;
      break;
    case v1::REPORT_FORMAT_JSON:
      rendering = store::Document::kReportJson;
      break;
    default:
      return MakeBadRequest("FORMAT_UNKNOWN", "format: not a format this coordinator writes",
                            {{"format", absl::StrCat("MARKDOWN or JSON expected, found ",
                                                     static_cast<int>(request.format()))}});
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> text,
                   store_.Read(request.analysis_id(), *rendering));
  if (!text.has_value()) {
    return MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                     absl::StrCat("analysis ", request.analysis_id(), ": its ",
                                  store::DocumentName(*rendering), " is not in the store"));
  }
  response.set_text(*text);
  return response;
}

absl::StatusOr<v1::ListKernelsResponse> AnalysisHandler::ListKernels(
    Caller caller, const v1::ListKernelsRequest& request) {
  ASSIGN_OR_RETURN(const v1::Analysis analysis, Visible(caller, request.analysis_id()));
  if (analysis.state() != v1::ANALYSIS_STATE_SUCCEEDED) return NotReady(analysis);
  ASSIGN_OR_RETURN(auto measurement, LoadDocument<v1::Measurement>(store_, request.analysis_id(),
                                                                   store::Document::kMeasurement));
  return ListKernelsPage(measurement.value_or(v1::Measurement()), request);
}

absl::StatusOr<v1::ExplainMetricResponse> AnalysisHandler::Explain(
    Caller caller, const v1::ExplainMetricRequest& request) {
  ASSIGN_OR_RETURN(const v1::Report report, ReadReport(caller, request.analysis_id()));
  return ExplainMetric(report, request.metric(), knowledge_.catalogue);
}

absl::StatusOr<v1::VerifyReportResponse> AnalysisHandler::Verify(
    Caller caller, const v1::VerifyReportRequest& request) {
  ASSIGN_OR_RETURN(const v1::Report report, ReadReport(caller, request.analysis_id()));
  ASSIGN_OR_RETURN(const v1::Analysis analysis, store_.Get(request.analysis_id()));
  ASSIGN_OR_RETURN(auto given, LoadDocument<v1::AnswerQuestionsRequest>(
                                   store_, request.analysis_id(), store::Document::kAnswers));
  std::vector<v1::Answer> answers;
  if (given.has_value()) answers.assign(given->answers().begin(), given->answers().end());
  ASSIGN_OR_RETURN(const v1::Understanding understanding,
                   workflow::Understand(analysis.request(), answers, knowledge_));
  return VerifyReport(report, understanding, knowledge_,
                      [this](const std::string& instance, const v1::RecomputeRequest& metrics) {
                        return RecomputeAt(instance, metrics);
                      });
}

absl::StatusOr<v1::RecomputeResponse> AnalysisHandler::RecomputeAt(
    const std::string& instance, const v1::RecomputeRequest& request) {
  ASSIGN_OR_RETURN(const delegation::Endpoint endpoint, registry_.Find("", instance));
  const auto stub = v1::SpecialistService::NewStub(endpoint.channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kRecomputeDeadline));
  v1::RecomputeResponse response;
  RETURN_IF_ERROR(FromGrpcStatus(stub->Recompute(&context, request, &response)));
  return response;
}

absl::StatusOr<v1::ValidateAnalysisResponse> AnalysisHandler::Validate(
    Caller, const v1::ValidateAnalysisRequest& request) {
  RETURN_IF_ERROR(CheckRequestSizes(request.request()));
  ASSIGN_OR_RETURN(const v1::Understanding understanding,
                   workflow::Understand(request.request(), {}, knowledge_));
  v1::ValidateAnalysisResponse response;
  *response.mutable_questions() = understanding.questions();
  if (understanding.questions().empty()) {
    ASSIGN_OR_RETURN(*response.mutable_plan(),
                     workflow::MakePlan(understanding, "validation", knowledge_));
    return response;
  }
  *response.mutable_plan()->mutable_readings() = understanding.readings();
  *response.mutable_plan()->mutable_context_metrics() = understanding.context_metrics();
  return response;
}

absl::StatusOr<v1::ListSpecialistsResponse> AnalysisHandler::ListSpecialists() const {
  v1::ListSpecialistsResponse response;
  for (v1::RegisteredSpecialist& specialist : registry_.List()) {
    *response.add_specialists() = std::move(specialist);
  }
  return response;
}

}  // namespace solward::service
