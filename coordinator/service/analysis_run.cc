#include "coordinator/service/analysis_run.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/status.h"
#include "coordinator/delegation/grpc_dispatcher.h"
#include "coordinator/report/render.h"
#include "coordinator/workflow/classify.h"
#include "coordinator/workflow/measure.h"
#include "coordinator/workflow/plan.h"
#include "coordinator/workflow/profile.h"
#include "coordinator/workflow/report.h"
#include "coordinator/workflow/understand.h"

namespace solward::service {
namespace {

using store::Document;
using store::Transition;

absl::Status Stopped() {
  return MakeError(absl::StatusCode::kCancelled, "ANALYSIS_STOPPED", "the analysis was stopped");
}

// Lets through what a watcher wants to see: every change of phase or words, and
// otherwise one progress of a delegation per interval.
class ProgressThinner {
 public:
  explicit ProgressThinner(absl::Duration interval) : interval_(interval) {}

  bool Shows(const v1::DelegationProgressed& progressed) {
    Last& last = last_[progressed.delegation_id()];
    const v1::DelegationProgress& now = progressed.progress();
    const bool changed = now.phase() != last.phase || now.message() != last.message;
    const absl::Time time = absl::Now();
    if (!changed && time - last.shown < interval_) return false;
    last = {now.phase(), now.message(), time};
    return true;
  }

 private:
  struct Last {
    v1::DelegationPhase phase = v1::DELEGATION_PHASE_UNSPECIFIED;
    std::string message;
    absl::Time shown = absl::InfinitePast();
  };
  const absl::Duration interval_;
  std::map<std::string, Last> last_;
};

std::vector<v1::PlannedDelegation> DelegationsOf(const v1::Plan& plan) {
  return {plan.delegations().begin(), plan.delegations().end()};
}

std::string AskingText(const std::vector<v1::PlannedDelegation>& delegations) {
  std::set<std::string> names;
  for (const v1::PlannedDelegation& delegation : delegations) names.insert(delegation.specialist());
  return absl::StrCat("asking ", absl::StrJoin(names, ", "));
}

std::string AnsweredText(const v1::Evidence& evidence) {
  int answered = 0;
  for (const auto& outcome : evidence.outcomes()) answered += outcome.has_result() ? 1 : 0;
  return absl::StrCat(answered, " of ", evidence.outcomes_size(), " delegations answered");
}

}  // namespace

AnalysisRun::AnalysisRun(std::string analysis_id, RunEnvironment environment, std::stop_token stop)
    : id_(std::move(analysis_id)), environment_(environment), stop_(std::move(stop)) {}

void AnalysisRun::Walk() {
  const absl::Status status = Stages();
  if (status.ok() || IsAnalysisEnded(status) || stop_.stop_requested()) return;
  Fail(status);
}

absl::Status AnalysisRun::Stages() {
  ASSIGN_OR_RETURN(const v1::Analysis analysis, environment_.journal.store().Get(id_));
  if (store::HasEnded(analysis.state())) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool waits, Understand(analysis.request()));
  if (waits) return absl::OkStatus();
  RETURN_IF_ERROR(Plan());
  RETURN_IF_ERROR(FirstWave());
  RETURN_IF_ERROR(Verdict());
  RETURN_IF_ERROR(SecondWave());
  return Report();
}

absl::StatusOr<bool> AnalysisRun::Understand(const v1::AnalysisRequest& request) {
  store::Store& store = environment_.journal.store();
  ASSIGN_OR_RETURN(auto known,
                   LoadDocument<v1::Understanding>(store, id_, Document::kUnderstanding));
  if (known.has_value()) {
    understanding_ = *std::move(known);
    RETURN_IF_ERROR(Say(v1::STAGE_UNDERSTAND, "taken up again"));
    return false;
  }
  RETURN_IF_ERROR(Say(v1::STAGE_UNDERSTAND, "reading the request"));
  ASSIGN_OR_RETURN(auto given,
                   LoadDocument<v1::AnswerQuestionsRequest>(store, id_, Document::kAnswers));
  std::vector<v1::Answer> answers;
  if (given.has_value()) answers.assign(given->answers().begin(), given->answers().end());
  ASSIGN_OR_RETURN(understanding_, workflow::Understand(request, answers, environment_.knowledge));
  if (understanding_.questions().empty()) return false;

  Transition asked;
  *asked.event.mutable_questions()->mutable_questions() = understanding_.questions();
  RETURN_IF_ERROR(Enter(v1::STAGE_UNDERSTAND, std::move(asked), [&](v1::Analysis& analysis) {
    analysis.set_state(v1::ANALYSIS_STATE_INPUT_REQUIRED);
    *analysis.mutable_questions() = understanding_.questions();
    return absl::OkStatus();
  }));
  return true;
}

absl::Status AnalysisRun::Plan() {
  ASSIGN_OR_RETURN(auto known,
                   LoadDocument<v1::Plan>(environment_.journal.store(), id_, Document::kPlan));
  if (known.has_value()) {
    plan_ = *std::move(known);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(plan_, workflow::MakePlan(understanding_, id_, environment_.knowledge));
  Transition planned;
  *planned.event.mutable_plan() = plan_;
  planned.documents = {{Document::kUnderstanding, understanding_.SerializeAsString()},
                       {Document::kPlan, plan_.SerializeAsString()}};
  return Enter(v1::STAGE_PLAN, std::move(planned), [&](v1::Analysis& analysis) {
    *analysis.mutable_plan() = plan_;
    return absl::OkStatus();
  });
}

absl::Status AnalysisRun::FirstWave() {
  ASSIGN_OR_RETURN(evidence_, Wave(DelegationsOf(plan_), Document::kEvidence));
  return absl::OkStatus();
}

// A verdict may ask for more, once: the graph specialist on launch overhead, or
// the evidence an undetermined verdict lacks. Its plan is made again after a
// restart, from the same results, so only its evidence is kept.
absl::Status AnalysisRun::SecondWave() {
  const std::vector<v1::PlannedDelegation> more =
      workflow::PlanSecondWave(plan_, measurement_, classification_, id_);
  if (more.empty()) return absl::OkStatus();
  v1::Plan whole = plan_;
  for (const v1::PlannedDelegation& delegation : more) *whole.add_delegations() = delegation;
  Transition planned;
  *planned.event.mutable_plan() = whole;
  RETURN_IF_ERROR(Enter(v1::STAGE_PLAN, std::move(planned), [&](v1::Analysis& analysis) {
    *analysis.mutable_plan() = whole;
    return absl::OkStatus();
  }));
  ASSIGN_OR_RETURN(const v1::Evidence second, Wave(more, Document::kSecondWaveEvidence));
  evidence_.MergeFrom(second);
  return Verdict();
}

absl::StatusOr<v1::Evidence> AnalysisRun::Wave(
    const std::vector<v1::PlannedDelegation>& delegations, Document document) {
  ASSIGN_OR_RETURN(auto known,
                   LoadDocument<v1::Evidence>(environment_.journal.store(), id_, document));
  if (known.has_value()) return *std::move(known);
  ASSIGN_OR_RETURN(v1::Evidence evidence, Delegate(delegations));
  Transition done;
  done.event.set_message(AnsweredText(evidence));
  done.documents = {{document, evidence.SerializeAsString()}};
  RETURN_IF_ERROR(Enter(v1::STAGE_MEASURE, std::move(done)));
  return evidence;
}

absl::StatusOr<v1::Evidence> AnalysisRun::Delegate(
    const std::vector<v1::PlannedDelegation>& delegations) {
  RETURN_IF_ERROR(Say(v1::STAGE_PROFILE, AskingText(delegations)));
  ProgressThinner thinner(environment_.progress_interval);
  absl::Status lost;
  const auto on_progress = [&](const v1::DelegationProgressed& progressed) {
    if (!lost.ok() || !thinner.Shows(progressed)) return;
    Transition transition;
    *transition.event.mutable_delegation() = progressed;
    lost = Enter(v1::STAGE_PROFILE, std::move(transition));
  };
  absl::StatusOr<v1::Evidence> evidence =
      workflow::Profile(delegations, environment_.dispatcher, on_progress, stop_);
  if (!lost.ok()) return lost;
  return evidence;
}

absl::Status AnalysisRun::Verdict() {
  ASSIGN_OR_RETURN(measurement_,
                   workflow::Measure(understanding_, evidence_, environment_.knowledge));
  ASSIGN_OR_RETURN(classification_, workflow::Classify(measurement_, environment_.knowledge));
  Transition classified;
  *classified.event.mutable_classification() = classification_;
  classified.documents = {{Document::kMeasurement, measurement_.SerializeAsString()},
                          {Document::kClassification, classification_.SerializeAsString()}};
  classified.primary_class = classification_.primary();
  return Enter(v1::STAGE_CLASSIFY, std::move(classified));
}

absl::Status AnalysisRun::Report() {
  ASSIGN_OR_RETURN(const v1::Report report,
                   workflow::MakeReport(id_, understanding_, measurement_, classification_,
                                        environment_.knowledge));
  const MetricCatalogue& catalogue = environment_.knowledge.catalogue;
  ASSIGN_OR_RETURN(std::string english,
                   report::RenderMarkdown(report, catalogue, Language::kEnglish));
  ASSIGN_OR_RETURN(std::string french,
                   report::RenderMarkdown(report, catalogue, Language::kFrench));
  ASSIGN_OR_RETURN(std::string json, report::RenderJson(report));
  Transition reported;
  reported.event.set_message("the report is ready");
  reported.documents = {{Document::kReport, report.SerializeAsString()},
                        {Document::kReportMarkdownEnglish, std::move(english)},
                        {Document::kReportMarkdownFrench, std::move(french)},
                        {Document::kReportJson, std::move(json)}};
  return Enter(v1::STAGE_REPORT, std::move(reported), [](v1::Analysis& analysis) {
    analysis.set_state(v1::ANALYSIS_STATE_SUCCEEDED);
    return absl::OkStatus();
  });
}

absl::Status AnalysisRun::Enter(v1::Stage stage, Transition transition, const Update& also) {
  if (stop_.stop_requested()) return Stopped();
  return environment_.journal
      .Append(id_, std::move(transition),
              [&](v1::Analysis& analysis) -> absl::Status {
                analysis.set_state(v1::ANALYSIS_STATE_RUNNING);
                analysis.set_stage(stage);
                return also ? also(analysis) : absl::OkStatus();
              })
      .status();
}

absl::Status AnalysisRun::Say(v1::Stage stage, const std::string& message) {
  Transition transition;
  transition.event.set_message(message);
  return Enter(stage, std::move(transition));
}

void AnalysisRun::Fail(const absl::Status& status) {
  const v1::AnalysisError error = delegation::ToAnalysisError(status);
  Transition failed;
  *failed.event.mutable_error() = error;
  const auto appended =
      environment_.journal.Append(id_, std::move(failed), [&](v1::Analysis& analysis) {
        analysis.set_state(v1::ANALYSIS_STATE_FAILED);
        *analysis.mutable_error() = error;
        return absl::OkStatus();
      });
  if (appended.ok() || IsAnalysisEnded(appended.status())) return;
  // The store refuses even this: the analysis is taken up again at the next start.
  Log(LogLevel::kError, "an analysis could not be ended",
      {{"id", id_},
       {"error", std::string(status.message())},
       {"store", std::string(appended.status().message())}});
}

}  // namespace solward::service
