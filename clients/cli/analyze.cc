// `solward analyze`: from captures to a printed report.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <thread>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/commands.h"
#include "clients/cli/local_stack.h"
#include "clients/cli/printing.h"
#include "clients/cli/progress.h"
#include "common/status.h"

namespace solward::cli {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(15);

// Both specialists have registered, or the children are not all alive.
absl::Status WaitForSpecialists(Connection& connection, LocalStack& stack,
                                const std::stop_token& stop) {
  const absl::Time end = absl::Now() + kStartTimeout;
  while (absl::Now() < end) {
    RETURN_IF_ERROR(stack.CheckChildren());
    if (stop.stop_requested()) return absl::CancelledError("interrupted");
    auto response =
        connection.Call(&v1::AnalysisService::Stub::ListSpecialists, v1::ListSpecialistsRequest());
    if (response.ok() && response->specialists_size() >= 2) return absl::OkStatus();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return MakeError(absl::StatusCode::kUnavailable, "SPECIALISTS_MISSING",
                   "the private specialists did not register in time");
}

absl::Status UploadAll(Connection& connection, const std::vector<std::string>& paths,
                       v1::AnalysisRequest& request) {
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(*request.mutable_workload()->mutable_captures()->add_captures(),
                     connection.UploadCapture(path));
  }
  return absl::OkStatus();
}

// Asks the person at the terminal; false when there is nobody.
absl::StatusOr<bool> AskPerson(Connection& connection, const v1::Analysis& analysis,
                               Language language) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return false;
  v1::AnswerQuestionsRequest request;
  request.set_analysis_id(analysis.id());
  for (const v1::Question& question : analysis.questions()) {
    std::cerr << DescribeQuestion(question, language) << "\n> " << std::flush;
    std::string line;
    if (!std::getline(std::cin, line)) return false;
    v1::Answer* answer = request.add_answers();
    answer->set_question_id(question.id());
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits('=', 1));
    const bool named = line.find('=') != std::string::npos &&
                       absl::c_linear_search(question.accepts(), parts.first);
    if (line.empty() || line == "skip") {
      answer->set_name("skip");
    } else if (named) {
      answer->set_name(parts.first);
      answer->set_value(parts.second);
    } else {
      answer->set_name(question.accepts_size() > 0 ? question.accepts(0) : "value");
      answer->set_value(line);
    }
  }
  RETURN_IF_ERROR(connection.Call(&v1::AnalysisService::Stub::AnswerQuestions, request).status());
  return true;
}

// The analysis goes with its private coordinator: what to put into the command.
absl::Status QuestionsWithoutAnalysis(const v1::Analysis& analysis, Language language) {
  std::string text = DescribeQuestions(analysis, language);
  absl::StrAppend(
      &text,
      "Give it with --context (for example --context flops_per_call=68.72GFLOP) or leave "
      "the metric out with --metrics, and run the command again.");
  return MakeError(absl::StatusCode::kFailedPrecondition, "INPUT_REQUIRED", text);
}

// Watches, asks and answers until the analysis has ended.
absl::Status RunToEnd(Connection& connection, v1::Analysis analysis, bool lost, Language language) {
  ProgressLine progress;
  uint64_t seen = 0;
  while (true) {
    RETURN_IF_ERROR(connection.Watch(analysis.id(), seen, /*stop_at_questions=*/true,
                                     [&](const v1::AnalysisEvent& event) {
                                       seen = event.sequence();
                                       progress.Show(event);
                                     }));
    progress.Clear();
    v1::GetAnalysisRequest request;
    request.set_analysis_id(analysis.id());
    ASSIGN_OR_RETURN(auto response,
                     connection.Call(&v1::AnalysisService::Stub::GetAnalysis, request));
    analysis = response.analysis();
    if (analysis.state() != v1::ANALYSIS_STATE_INPUT_REQUIRED) return EndStatus(analysis);
    ASSIGN_OR_RETURN(const bool answered, AskPerson(connection, analysis, language));
    if (!answered) return lost ? QuestionsWithoutAnalysis(analysis, language) : EndStatus(analysis);
  }
}

// A report on no capture at all is complete, and still not what was wanted.
absl::Status CheckCaptures(Connection& connection, const std::string& id) {
  v1::GetReportRequest request;
  request.set_analysis_id(id);
  ASSIGN_OR_RETURN(auto response, connection.Call(&v1::AnalysisService::Stub::GetReport, request));
  const auto& captures = response.report().captures();
  if (absl::c_any_of(captures, [](const v1::CaptureOutcome& c) { return c.code() == 0; })) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_CAPTURE_USABLE",
                   "no capture could be used; the report says why");
}

absl::Status AnalyzeWith(Connection& connection, const AnalyzeCommand& command,
                         v1::AnalysisRequest request, bool lost) {
  RETURN_IF_ERROR(UploadAll(connection, command.request.captures, request));
  ASSIGN_OR_RETURN(const Language language, ParseLanguage(command.output.language));
  if (command.plan_only) {
    v1::ValidateAnalysisRequest validate;
    *validate.mutable_request() = request;
    ASSIGN_OR_RETURN(auto response,
                     connection.Call(&v1::AnalysisService::Stub::ValidateAnalysis, validate));
    return WriteText(DescribePlan(response.plan(), response.questions(), language),
                     command.output.path);
  }
  v1::SubmitAnalysisRequest submit;
  submit.set_key(command.request.key);
  *submit.mutable_request() = request;
  ASSIGN_OR_RETURN(const v1::Analysis analysis, connection.Submit(submit));
  if (command.detach) return WriteText(absl::StrCat(analysis.id(), "\n"), "");
  if (!lost) std::fprintf(stderr, "analysis %s\n", analysis.id().c_str());
  RETURN_IF_ERROR(RunToEnd(connection, analysis, lost, language));
  RETURN_IF_ERROR(PrintReport(connection, analysis.id(), command.output));
  return CheckCaptures(connection, analysis.id());
}

}  // namespace

absl::Status Analyze(const GlobalOptions& global, const AnalyzeCommand& command) {
  if (command.local && command.detach) {
    return MakeError(absl::StatusCode::kInvalidArgument, "USAGE",
                     "--detach cannot go with --local: nothing is left running to detach to");
  }
  ASSIGN_OR_RETURN(v1::AnalysisRequest request, BuildRequest(command.request));
  std::unique_ptr<LocalStack> stack;
  std::string target = global.target;
  if (command.local) {
    ASSIGN_OR_RETURN(stack, LocalStack::Start(command.state_folder));
    target = stack->target();
  }
  Connection connection(target, global.ca_file, global.stop);
  if (stack != nullptr) {
    RETURN_IF_ERROR(connection.WaitReady(kStartTimeout));
    RETURN_IF_ERROR(WaitForSpecialists(connection, *stack, global.stop));
  }
  return AnalyzeWith(connection, command, std::move(request),
                     command.local && command.state_folder.empty());
}

}  // namespace solward::cli
