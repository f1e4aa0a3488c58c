#include "agents/cuda_graph/cuda_graph_specialist.h"

#include "common/status.h"

namespace solward::cuda_graph {
namespace {

absl::Status NotAvailable() {
  return MakeError(
      absl::StatusCode::kUnimplemented, "CUDA_GRAPH_ANALYSIS_NOT_AVAILABLE",
      "perf-torch-cuda-graph-specialist cannot check or apply CUDA graphs in this version; "
      "meanwhile try torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph by hand and "
      "compare the unprofiled step time");
}

class CudaGraphSpecialist : public runtime::Specialist {
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
      const std::vector<v1::Metric>& /*metrics*/, runtime::Workspace& /*workspace*/) override {
    return NotAvailable();
  }
};

}  // namespace

std::unique_ptr<runtime::Specialist> MakeCudaGraphSpecialist() {
  return std::make_unique<CudaGraphSpecialist>();
}

}  // namespace solward::cuda_graph
