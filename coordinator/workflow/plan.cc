#include "coordinator/workflow/plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/outcome_lint.h"
#include "coordinator/workflow/capture_abilities.h"
#include "coordinator/workflow/flops.h"

namespace solward::workflow {
namespace {

constexpr char kProfiling[] = "perf-profiling-specialist";
constexpr char kCudaGraph[] = "perf-torch-cuda-graph-specialist";

const char* WhyOf(const v1::Workload& workload) {
  switch (workload.what_case()) {
    case v1::Workload::kCaptures:
      return "plan.read_captures";
    default:
      return "plan.measure_workload";
  }
}

v1::DelegationRequest BaseRequest(const v1::AnalysisRequest& request, std::string key) {
  v1::DelegationRequest delegation;
  delegation.set_key(std::move(key));
  *delegation.mutable_workload() = request.workload();
  if (request.has_region()) *delegation.mutable_region() = request.region();
  if (request.has_context()) *delegation.mutable_context() = request.context();
  if (request.has_constraints()) *delegation.mutable_constraints() = request.constraints();
  if (request.has_remote()) *delegation.mutable_remote() = request.remote();
  return delegation;
}

// What a plan can already say about wanted metrics: nothing here is a guess
// about values, only about what the captures and the context can hold.
class Foresight {
 public:
  Foresight(const v1::AnalysisRequest& request, const MetricCatalogue& catalogue)
      : request_(request), catalogue_(catalogue) {}

  void AddTo(v1::Plan& plan) const {
    std::set<std::string> seen;
    for (const v1::DesiredMetric& desired : request_.desired_metrics()) {
      for (const std::string& id : catalogue_.Expand(desired.id())) {
        if (seen.insert(id).second) AddMetric(id, desired.scope(), plan);
      }
    }
  }

 private:
  void AddMetric(const std::string& id, v1::ScopeKind scope, v1::Plan& plan) const {
    const v1::ProblemContext& context = request_.context();
    if (id == "mfu" && !context.has_flops_per_call() && !context.has_flops_per_step() &&
        !FlopsFromDimensions(context, catalogue_)) {
      Add(id, scope, v1::UNMEASURED_REASON_CONTEXT_MISSING,
          "neither FLOPs nor the dimensions of a known operation are given",
          "give flops_per_call, flops_per_step or the dimensions in the context", plan);
      return;
    }
    if (!request_.workload().has_captures() || AnyCaptureGives(id)) return;
    const std::vector<std::string> evidence = BuiltInCaptureAbilities().EvidenceFor(id);
    const bool unprofiled =
        std::find(evidence.begin(), evidence.end(), "unprofiled_run") != evidence.end();
    if (unprofiled && context.has_step_time()) return;
    if (unprofiled) {
      Add(id, scope, v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN,
          "a recorded capture holds the profiler's own slowdown",
          "give the step time of a run without a profiler as context step_time", plan);
    } else {
      Add(id, scope, v1::UNMEASURED_REASON_CAPTURE_KIND,
          "the captures hold no evidence of this kind",
          absl::StrCat("add a capture with ", absl::StrJoin(evidence, " or ")), plan);
    }
  }

  bool AnyCaptureGives(const std::string& id) const {
    const auto& captures = request_.workload().captures().captures();
    return std::any_of(captures.begin(), captures.end(), [&](const v1::ArtifactReference& c) {
      return BuiltInCaptureAbilities().CanGive(c.kind(), id);
    });
  }

  void Add(const std::string& id, v1::ScopeKind scope, v1::UnmeasuredReason reason,
           const std::string& detail, const std::string& remedy, v1::Plan& plan) const {
    v1::UnmeasuredMetric& unmeasured = *plan.add_foreseen_unmeasured();
    unmeasured.set_id(id);
    unmeasured.mutable_scope()->set_kind(
        scope == v1::SCOPE_KIND_UNSPECIFIED ? catalogue_.Find(id)->default_scope : scope);
    unmeasured.mutable_scope()->set_device(-1);
    unmeasured.mutable_scope()->set_rank(-1);
    unmeasured.set_reason(reason);
    unmeasured.set_detail(detail);
    unmeasured.set_remedy(remedy);
  }

  const v1::AnalysisRequest& request_;
  const MetricCatalogue& catalogue_;
};

}  // namespace

absl::StatusOr<v1::Plan> MakePlan(const v1::Understanding& understanding,
                                  const std::string& analysis_id, const Knowledge& knowledge) {
  const v1::AnalysisRequest& request = understanding.request();
  v1::Plan plan;
  v1::PlannedDelegation* planned = plan.add_delegations();
  planned->set_specialist(kProfiling);
  planned->set_wave(1);
  planned->mutable_why()->set_message_id(WhyOf(request.workload()));
  v1::DelegationRequest& delegation = *planned->mutable_request();
  delegation = BaseRequest(request, absl::StrCat(analysis_id, "-1"));
  *delegation.mutable_desired_metrics() = request.desired_metrics();
  // A statement that was let through here passes there too: one lint, two sides.
  if (LintOutcomeText(request.statement()).empty()) delegation.set_statement(request.statement());
  *plan.mutable_readings() = understanding.readings();
  *plan.mutable_context_metrics() = understanding.context_metrics();
  Foresight(request, knowledge.catalogue).AddTo(plan);
  return plan;
}

std::vector<v1::PlannedDelegation> PlanSecondWave(const v1::Plan& plan,
                                                  const v1::Measurement& measurement,
                                                  const v1::Classification& classification,
                                                  const std::string& analysis_id) {
  if (plan.delegations().empty()) return {};
  const v1::DelegationRequest& first = plan.delegations(0).request();
  const bool wanted = std::any_of(
      first.desired_metrics().begin(), first.desired_metrics().end(),
      [](const v1::DesiredMetric& metric) { return metric.id() == "cuda_graph_compatibility"; });
  const bool launch_bound = classification.primary() == v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD;
  if (!wanted && !launch_bound) return {};
  // Asked once.
  for (const v1::PlannedDelegation& delegation : plan.delegations()) {
    if (delegation.specialist() == kCudaGraph) return {};
  }
  v1::PlannedDelegation planned;
  planned.set_specialist(kCudaGraph);
  planned.set_wave(2);
  planned.mutable_why()->set_message_id(launch_bound ? "plan.launch_overhead_wants_graphs"
                                                     : "plan.graphs_were_wanted");
  v1::DelegationRequest& delegation = *planned.mutable_request();
  delegation = first;
  delegation.set_key(absl::StrCat(analysis_id, "-2"));
  delegation.clear_statement();
  delegation.clear_desired_metrics();
  delegation.add_desired_metrics()->set_id("cuda_graph_compatibility");
  // Evidence of whole steps and runs; kernels and derivations stay behind.
  for (const v1::Metric& metric : measurement.metrics()) {
    if (metric.scope().kind() != v1::SCOPE_KIND_KERNEL && metric.provenance().has_measured()) {
      *delegation.add_evidence() = metric;
    }
  }
  return {planned};
}

}  // namespace solward::workflow
