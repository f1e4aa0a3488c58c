#include "agents/cuda_graph/cuda_graph_specialist.h"

#include "common/status.h"

namespace solward::cuda_graph {
namespace {

absl::Status NotAvailable() {
  return MakeError(
      absl::StatusCode::kUnimplemented, "CUDA_GRAPH_ANALYSIS_NOT_AVAILABLE",
      "CUDA graph analysis is not in this version: it will say which parts of a step can be "
      "captured into a CUDA graph, what prevents the others, and offer a patch. Meanwhile look for "
      "synchronizing calls and changing shapes in the region, and try torch.cuda.graph or "
      "torch.compile(mode=\"reduce-overhead\") on it");
}

class CudaGraphSpecialist final : public runtime::Specialist {
 public:
  v1::SpecialistDescription Describe() const override {
    v1::SpecialistDescription description;
    description.set_name("perf-torch-cuda-graph-specialist");
    description.set_version(SOLWARD_VERSION);
    return description;
  }

  absl::StatusOr<v1::DelegationResult> Run(const v1::DelegationRequest& /*request*/,
                                           runtime::DelegationContext& /*context*/) override {
    return NotAvailable();
  }

  absl::StatusOr<std::vector<v1::RecomputedMetric>> Recompute(
      const std::vector<v1::Metric>& metrics, runtime::Workspace& /*workspace*/) override {
    std::vector<v1::RecomputedMetric> verdicts;
    for (const v1::Metric& metric : metrics) {
      v1::RecomputedMetric& verdict = verdicts.emplace_back();
      verdict.set_key(metric.key());
      verdict.set_verdict(v1::RECOMPUTE_VERDICT_NO_ARTIFACT);
      verdict.set_detail("this specialist measures nothing and keeps no artifact of it");
    }
    return verdicts;
  }
};

}  // namespace

std::unique_ptr<runtime::Specialist> MakeCudaGraphSpecialist() {
  return std::make_unique<CudaGraphSpecialist>();
}

}  // namespace solward::cuda_graph
