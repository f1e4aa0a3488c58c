#include "coordinator/workflow/understand.h"

#include <algorithm>
#include <utility>

#include "common/metric.h"
#include "common/problem_context.h"
#include "common/status.h"
#include "coordinator/workflow/flops.h"
#include "coordinator/workflow/statement.h"
#include "coordinator/workflow/understand_questions.h"
#include "coordinator/workflow/understand_request.h"

namespace solward::workflow {
namespace {

using internal::Answered;
using internal::Conflict;

// Unknown metrics that an answer replaced or gave up.
void ReplaceUnknownMetrics(const Answered& answered, const MetricCatalogue& catalogue,
                           v1::AnalysisRequest& request) {
  google::protobuf::RepeatedPtrField<v1::DesiredMetric> kept;
  for (v1::DesiredMetric metric : request.desired_metrics()) {
    const bool known =
        catalogue.Find(metric.id()) != nullptr || catalogue.FindGroup(metric.id()) != nullptr;
    const std::string question = internal::UnknownMetricQuestion(metric.id());
    if (!known) {
      if (answered.skipped.count(question) > 0) continue;
      const auto replacement = answered.metrics.find(question);
      if (replacement != answered.metrics.end()) metric.set_id(replacement->second);
    }
    const bool twice = std::any_of(kept.begin(), kept.end(), [&](const v1::DesiredMetric& other) {
      return other.id() == metric.id() && other.scope() == metric.scope();
    });
    if (!twice) *kept.Add() = std::move(metric);
  }
  request.mutable_desired_metrics()->Swap(&kept);
}

// FLOPs and dimensions disagreed: only what the client chose stays.
void DropDisagreeing(const Answered& answered, const MetricCatalogue& catalogue,
                     v1::ProblemContext& context) {
  if (answered.flops_win) {
    context.clear_operations();
  } else if (answered.dimensions_win) {
    const auto computed = FlopsFromDimensions(context, catalogue);
    if (!computed) return;
    if (computed->per_step) {
      context.clear_flops_per_step();
    } else {
      context.clear_flops_per_call();
    }
  }
}

void NameKinds(v1::ProblemContext& context) {
  for (v1::Operation& operation : *context.mutable_operations()) {
    operation.set_kind(KindOf(operation));
    if (operation.field().empty()) operation.set_field("context");
  }
}

}  // namespace

absl::StatusOr<v1::Understanding> Understand(const v1::AnalysisRequest& request,
                                             const std::vector<v1::Answer>& answers,
                                             const Knowledge& knowledge) {
  RETURN_IF_ERROR(internal::ValidateRequest(request));
  v1::Understanding out;
  v1::AnalysisRequest& merged = *out.mutable_request();
  merged = request;
  Answered answered;
  RETURN_IF_ERROR(internal::ApplyAnswers(answers, merged, answered));

  const StatementContent statement = ReadStatement(request.statement(), knowledge.catalogue);
  for (const v1::StatementReading& reading : statement.readings) *out.add_readings() = reading;
  const std::vector<Conflict> conflicts = internal::MergeStatement(statement, knowledge, merged);
  ReplaceUnknownMetrics(answered, knowledge.catalogue, merged);
  const bool metrics_named = !merged.desired_metrics().empty();
  if (merged.desired_metrics().empty()) {
    for (const std::string& id : knowledge.catalogue.default_metrics()) {
      merged.add_desired_metrics()->set_id(id);
    }
  }
  DropDisagreeing(answered, knowledge.catalogue, *merged.mutable_context());
  NameKinds(*merged.mutable_context());

  for (v1::Question& question : internal::OpenQuestions(
           {merged, statement, conflicts, answered, knowledge, metrics_named})) {
    *out.add_questions() = std::move(question);
  }
  ASSIGN_OR_RETURN(const MetricSet metrics, ContextMetrics(merged.context(), knowledge.catalogue));
  for (const Metric& metric : metrics.metrics()) *out.add_context_metrics() = metric.proto();
  return out;
}

}  // namespace solward::workflow
