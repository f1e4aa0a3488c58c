#include "clients/cli/commands.h"

#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "clients/cli/completion.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/printing.h"
#include "clients/cli/progress.h"
#include "common/metric_catalogue.h"
#include "common/status.h"

namespace solward::cli {
namespace {

using Stub = v1::AnalysisService::Stub;

std::string CancelWords(v1::CancelOutcome outcome) {
  switch (outcome) {
    case v1::CANCEL_OUTCOME_CANCELLED:
      return "cancelled";
    case v1::CANCEL_OUTCOME_ALREADY_ENDED:
      return "had already ended";
    case v1::CANCEL_OUTCOME_ALREADY_CANCELLED:
      return "was already cancelled";
    default:
      return "unknown outcome";
  }
}

}  // namespace

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  if (ErrorReason(status) == "INPUT_REQUIRED") return kExitInputRequired;
  if (ErrorReason(status) == "NOT_VERIFIED") return kExitNotVerified;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAlreadyExists:
      return kExitUsage;
    case absl::StatusCode::kUnavailable:
      return kExitUnreachable;
    case absl::StatusCode::kCancelled:
      return kExitCancelled;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    default:
      return kExitFailed;
  }
}

absl::Status Watch(Connection& connection, const std::string& id, uint64_t after) {
  v1::GetAnalysisRequest request;
  request.set_analysis_id(id);
  ASSIGN_OR_RETURN(auto now, connection.Call(&Stub::GetAnalysis, request));
  // Nothing more comes until somebody answers: the questions are the answer.
  const bool waits = now.analysis().state() == v1::ANALYSIS_STATE_INPUT_REQUIRED &&
                     now.analysis().last_sequence() <= after;
  if (!waits) {
    RETURN_IF_ERROR(
        connection.Watch(id, after, /*stop_at_questions=*/true, [](const v1::AnalysisEvent& event) {
          std::cout << absl::StreamFormat("%4d %s\n", event.sequence(), DescribeEvent(event))
                    << std::flush;
        }));
    ASSIGN_OR_RETURN(now, connection.Call(&Stub::GetAnalysis, request));
  }
  return EndStatus(now.analysis());
}

absl::Status List(Connection& connection, const std::string& filter, uint32_t limit) {
  v1::ListAnalysesRequest request;
  request.set_filter(filter);
  std::vector<std::vector<std::string>> rows = {{"ID", "STATE", "SUBMITTED", "WORKLOAD"}};
  uint64_t total = 0;
  do {
    request.set_page_size(std::min<uint32_t>(1000, limit - static_cast<uint32_t>(rows.size() - 1)));
    ASSIGN_OR_RETURN(auto page, connection.Call(&Stub::ListAnalyses, request));
    total = page.total();
    for (const v1::Analysis& analysis : page.analyses()) {
      const auto& captures = analysis.request().workload().captures().captures();
      std::string workload = captures.empty() ? "" : captures[0].label();
      if (captures.size() > 1) absl::StrAppend(&workload, " and ", captures.size() - 1, " more");
      rows.push_back({analysis.id(), StateWords(analysis.state()),
                      absl::FormatTime("%Y-%m-%d %H:%M:%S",
                                       absl::FromUnixSeconds(analysis.submit_time().seconds()),
                                       absl::UTCTimeZone()),
                      workload});
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && rows.size() <= limit);
  std::string out = Table(rows);
  if (rows.size() - 1 < total) {
    absl::StrAppend(&out, rows.size() - 1, " of ", total, " shown; raise --limit for more\n");
  }
  return WriteText(out, "");
}

absl::Status Get(Connection& connection, const std::string& id) {
  v1::GetAnalysisRequest request;
  request.set_analysis_id(id);
  ASSIGN_OR_RETURN(auto response, connection.Call(&Stub::GetAnalysis, request));
  return WriteText(DescribeAnalysis(response.analysis()), "");
}

absl::Status PrintReport(Connection& connection, const std::string& id,
                         const OutputOptions& output) {
  ASSIGN_OR_RETURN(const Language language, ParseLanguage(output.language));
  v1::GetReportRequest request;
  request.set_analysis_id(id);
  request.set_format(output.format == "json" ? v1::REPORT_FORMAT_JSON : v1::REPORT_FORMAT_MARKDOWN);
  request.set_language(language == Language::kFrench ? v1::REPORT_LANGUAGE_FRENCH
                                                     : v1::REPORT_LANGUAGE_ENGLISH);
  ASSIGN_OR_RETURN(auto response, connection.Call(&Stub::GetReport, request));
  return WriteText(response.text(), output.path);
}

absl::Status AnswerQuestions(Connection& connection, const std::string& id,
                             const std::vector<std::string>& answers) {
  v1::AnswerQuestionsRequest request;
  request.set_analysis_id(id);
  if (answers.size() % 2 != 0 || answers.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "USAGE",
                     "expected pairs: QUESTION_ID NAME=VALUE, or QUESTION_ID skip");
  }
  for (size_t i = 0; i < answers.size(); i += 2) {
    v1::Answer* answer = request.add_answers();
    answer->set_question_id(answers[i]);
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(answers[i + 1], absl::MaxSplits('=', 1));
    answer->set_name(parts.first);
    answer->set_value(parts.second);
  }
  ASSIGN_OR_RETURN(auto response, connection.Call(&Stub::AnswerQuestions, request));
  return WriteText(DescribeAnalysis(response.analysis()), "");
}

absl::Status Cancel(Connection& connection, const std::string& id) {
  v1::CancelAnalysisRequest request;
  request.set_analysis_id(id);
  ASSIGN_OR_RETURN(auto response, connection.Call(&Stub::CancelAnalysis, request));
  return WriteText(absl::StrCat("analysis ", id, " ", CancelWords(response.outcome()), "\n"), "");
}

absl::Status Specialists(Connection& connection) {
  ASSIGN_OR_RETURN(auto response,
                   connection.Call(&Stub::ListSpecialists, v1::ListSpecialistsRequest()));
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "INSTANCE", "VERSION", "HEALTH", "TARGET"}};
  for (const auto& specialist : response.specialists()) {
    rows.push_back({specialist.description().name(), specialist.description().instance_id(),
                    specialist.description().version(), specialist.healthy() ? "healthy" : "lost",
                    specialist.target()});
  }
  return WriteText(Table(rows), "");
}

absl::Status Artifact(Connection& connection, const std::string& artifact_id,
                      const std::string& path) {
  if (path.empty()) {
    return connection.Download(artifact_id, "", [](const std::string& data) {
      std::cout << data;
      return std::cout ? absl::OkStatus() : absl::InternalError("stdout cannot be written");
    });
  }
  const std::string temporary = absl::StrCat(path, ".part");
  std::ofstream file(temporary, std::ios::binary);
  RETURN_IF_ERROR(connection.Download(artifact_id, "", [&](const std::string& data) {
    file << data;
    return file ? absl::OkStatus()
                : MakeError(absl::StatusCode::kPermissionDenied, "OUTPUT",
                            absl::StrCat("-o ", path, ": cannot be written"));
  }));
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return MakeError(absl::StatusCode::kPermissionDenied, "OUTPUT",
                     absl::StrCat("-o ", path, ": cannot be written"));
  }
  return absl::OkStatus();
}

absl::Status Kernels(Connection& connection, const std::string& id, uint32_t limit) {
  v1::ListKernelsRequest request;
  request.set_analysis_id(id);
  request.set_page_size(limit);
  ASSIGN_OR_RETURN(auto response, connection.Call(&Stub::ListKernels, request));
  std::vector<std::vector<std::string>> rows = {{"TOTAL", "LAUNCHES", "GPU", "KERNEL"}};
  for (const v1::KernelSummary& kernel : response.kernels()) {
    rows.push_back({FormatQuantity(static_cast<double>(kernel.total_time_ns()), "ns", true, 2,
                                   Language::kEnglish),
                    absl::StrCat(kernel.launches()), absl::StrCat(kernel.device()), kernel.name()});
  }
  std::string out = Table(rows);
  if (rows.size() - 1 < response.total()) {
    absl::StrAppend(&out, rows.size() - 1, " of ", response.total(), " kernels shown\n");
  }
  return WriteText(out, "");
}

absl::Status Explain(Connection& connection, const std::string& id, const std::string& metric) {
  v1::ExplainMetricRequest request;
  request.set_analysis_id(id);
  request.set_metric(metric);
  ASSIGN_OR_RETURN(auto response, connection.Call(&Stub::ExplainMetric, request));
  return WriteText(response.text(), "");
}

absl::Status Verify(Connection& connection, const std::string& id) {
  v1::VerifyReportRequest request;
  request.set_analysis_id(id);
  ASSIGN_OR_RETURN(auto response, connection.Call(&Stub::VerifyReport, request));
  std::string out;
  for (const v1::RecomputedMetric& metric : response.metrics()) {
    if (metric.verdict() == v1::RECOMPUTE_VERDICT_MATCHES) continue;
    absl::StrAppend(&out, metric.key(), ": ", v1::RecomputeVerdict_Name(metric.verdict()), " ",
                    metric.detail(), "\n");
  }
  absl::StrAppend(&out, response.matching(), " numbers match their artifacts, ",
                  response.not_matching(), " do not\n");
  RETURN_IF_ERROR(WriteText(out, ""));
  if (response.not_matching() == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kDataLoss, "NOT_VERIFIED",
                   "the report does not match its artifacts");
}

absl::Status Metrics(const std::string& language) {
  ASSIGN_OR_RETURN(const Language chosen, ParseLanguage(language));
  std::vector<std::vector<std::string>> rows = {{"ID", "UNIT", "NAME", "DEFINITION"}};
  for (const MetricDefinition& metric : BuiltInCatalogue().metrics()) {
    rows.push_back({metric.id, metric.unit,
                    chosen == Language::kFrench ? metric.name_fr : metric.name_en,
                    metric.definition});
  }
  for (const MetricGroup& group : BuiltInCatalogue().groups()) {
    rows.push_back(
        {group.id, "", "", absl::StrCat("group: ", absl::StrJoin(group.metric_ids, ", "))});
  }
  return WriteText(Table(rows), "");
}

absl::Status Completion(const std::string& shell) {
  ASSIGN_OR_RETURN(const std::string script, CompletionScript(shell));
  return WriteText(script, "");
}

}  // namespace solward::cli
