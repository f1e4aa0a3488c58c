#include "coordinator/workflow/plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/outcome_lint.h"

namespace solward::workflow {
namespace {

constexpr char kProfiling[] = "perf-profiling-specialist";
constexpr char kCudaGraph[] = "perf-torch-cuda-graph-specialist";

// Metrics that only an unprofiled run gives, or a step time the client knows.
constexpr const char* kUnprofiled[] = {"throughput", "sample_throughput", "token_throughput",
                                       "latency"};

const char* WhyOf(const v1::Workload& workload) {
  switch (workload.what_case()) {
    case v1::Workload::kCaptures: return "plan.read_captures";
    default: return "plan.measure_workload";
  }
}

bool Wants(const v1::AnalysisRequest& request, absl::string_view id) {
  return std::any_of(request.desired_metrics().begin(), request.desired_metrics().end(),
                     [id](const v1::DesiredMetric& metric) { return metric.id() == id; });
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

void AddForeseen(const v1::AnalysisRequest& request, const MetricCatalogue& catalogue,
                 v1::Plan& plan) {
  if (request.workload().what_case() != v1::Workload::kCaptures ||
      request.context().has_step_time()) {
    return;
  }
  for (const char* id : kUnprofiled) {
    if (!Wants(request, id)) continue;
    v1::UnmeasuredMetric* unmeasured = plan.add_foreseen_unmeasured();
    unmeasured->set_id(id);
    unmeasured->mutable_scope()->set_kind(catalogue.Find(id)->default_scope);
    unmeasured->set_reason(v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN);
    unmeasured->set_detail("a recorded capture holds the profiler's own slowdown");
    unmeasured->set_remedy("give the step time of a run without a profiler as context step_time");
  }
}

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
  AddForeseen(request, knowledge.catalogue, plan);
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
