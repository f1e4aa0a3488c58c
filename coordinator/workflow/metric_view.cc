#include "coordinator/workflow/metric_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "coordinator/workflow/kernel_names.h"

namespace solward::workflow {

const v1::Measured* MeasuredSource(const MetricSet& metrics, const Metric& metric) {
  std::vector<const Metric*> open = {&metric};
  std::set<const Metric*> seen;
  while (!open.empty()) {
    const Metric* next = open.back();
    open.pop_back();
    if (next == nullptr || !seen.insert(next).second) continue;
    if (next->provenance().has_measured()) return &next->provenance().measured();
    const auto& inputs = next->provenance().derived().inputs();
    for (auto input = inputs.rbegin(); input != inputs.rend(); ++input) {
      open.push_back(metrics.FindKey(input->metric_key()));
    }
  }
  return nullptr;
}

size_t ToolRank(const MetricCatalogue& catalogue, absl::string_view tool) {
  const std::vector<std::string>& order = catalogue.tool_precedence();
  return static_cast<size_t>(std::find(order.begin(), order.end(), tool) - order.begin());
}

bool SameLane(int device_a, int rank_a, int device_b, int rank_b) {
  return device_a == device_b && (rank_a == rank_b || rank_a < 0 || rank_b < 0);
}

LaneView::LaneView(const MetricSet& metrics, const v1::Timeline& timeline) : timeline_(&timeline) {
  for (const std::string& key : timeline.metric_keys()) {
    if (const Metric* metric = metrics.FindKey(key)) metrics_.push_back(metric);
  }
}

const Metric* LaneView::Find(absl::string_view id, v1::ScopeKind kind) const {
  for (const Metric* metric : metrics_) {
    if (metric->id() == id && metric->scope().kind() == kind && metric->scope().name().empty()) {
      return metric;
    }
  }
  return nullptr;
}

const Metric* LaneView::Time(absl::string_view id) const {
  return Find(id, HasSteps() ? v1::SCOPE_KIND_STEP : v1::SCOPE_KIND_RUN);
}

bool LaneView::HasSteps() const {
  return Find("profiled_step_time", v1::SCOPE_KIND_STEP) != nullptr;
}

v1::Scope LaneView::Scope(v1::ScopeKind kind) const {
  v1::Scope scope = RunScope(device(), rank());
  scope.set_kind(kind);
  return scope;
}

v1::Scope LaneView::TimeScope() const {
  return Scope(HasSteps() ? v1::SCOPE_KIND_STEP : v1::SCOPE_KIND_RUN);
}

const Metric* UnprofiledStepTime(const MetricSet& metrics, const MetricCatalogue& catalogue,
                                 int device, int rank) {
  const Metric* best = nullptr;
  size_t best_rank = 0;
  for (const Metric* metric : metrics.FindAll("step_time")) {
    const v1::Scope& scope = metric->scope();
    const bool holds =
        scope.device() < 0 || device < 0 || SameLane(scope.device(), scope.rank(), device, rank);
    if (!holds) continue;
    const v1::Measured* source = MeasuredSource(metrics, *metric);
    const size_t tool = source != nullptr ? ToolRank(catalogue, source->tool())
                                          : catalogue.tool_precedence().size() + 1;
    if (best == nullptr || tool < best_rank) {
      best = metric;
      best_rank = tool;
    }
  }
  return best;
}

const Metric* CountedKernel::Find(absl::string_view id) const {
  for (const Metric* metric : metrics) {
    if (metric->id() == id) return metric;
  }
  return nullptr;
}

v1::Scope CountedKernel::Scope() const { return KernelScope(name, device, rank); }

namespace {

// A summary's metrics behind those of a kernel, the better tools' first.
void AddMetrics(const MetricSet& set, const MetricCatalogue& catalogue,
                const v1::KernelSummary& summary, CountedKernel& kernel) {
  for (const std::string& key : summary.metric_keys()) {
    if (const Metric* metric = set.FindKey(key)) kernel.metrics.push_back(metric);
  }
  std::stable_sort(kernel.metrics.begin(), kernel.metrics.end(),
                   [&](const Metric* a, const Metric* b) {
                     const v1::Measured* source_a = MeasuredSource(set, *a);
                     const v1::Measured* source_b = MeasuredSource(set, *b);
                     return ToolRank(catalogue, source_a ? source_a->tool() : "") <
                            ToolRank(catalogue, source_b ? source_b->tool() : "");
                   });
}

}  // namespace

std::vector<CountedKernel> CountedKernels(
    const MetricSet& metrics, const google::protobuf::RepeatedPtrField<v1::KernelSummary>& kernels,
    const google::protobuf::RepeatedPtrField<v1::Timeline>& timelines,
    const MetricCatalogue& catalogue) {
  std::set<std::string> timeline_artifacts;
  for (const v1::Timeline& timeline : timelines) timeline_artifacts.insert(timeline.artifact_id());
  std::map<std::tuple<std::string, int, int>, size_t> index;
  std::vector<CountedKernel> out;
  for (int i = 0; i < kernels.size(); ++i) {
    const v1::KernelSummary& summary = kernels[i];
    if (timeline_artifacts.count(summary.artifact_id()) > 0) continue;
    std::string normal = NormalKernelName(summary.name());
    const auto [entry, is_new] =
        index.try_emplace({normal, summary.device(), summary.rank()}, out.size());
    if (is_new) {
      CountedKernel& kernel = out.emplace_back();
      kernel.name = summary.name();
      kernel.normal_name = std::move(normal);
      kernel.device = summary.device();
      kernel.rank = summary.rank();
      kernel.summary = i;
      kernel.category = summary.category();
    }
    CountedKernel& kernel = out[entry->second];
    kernel.total_ns = std::max(kernel.total_ns, static_cast<double>(summary.total_time_ns()));
    AddMetrics(metrics, catalogue, summary, kernel);
  }
  std::stable_sort(out.begin(), out.end(), [](const CountedKernel& a, const CountedKernel& b) {
    return a.total_ns > b.total_ns;
  });
  return out;
}

}  // namespace solward::workflow
