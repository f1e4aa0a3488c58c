#include "agents/profiling/unmeasured.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agents/profiling/counter_catalogue.h"
#include "agents/profiling/smi_metrics.h"

namespace solward::profiling {
namespace {

using absl::string_view;

constexpr std::array<string_view, 4> kUnprofiled = {"throughput", "sample_throughput",
                                                    "token_throughput", "latency"};

constexpr std::array<string_view, 34> kTimeline = {"window_time",
                                                   "step_count",
                                                   "profiled_step_time",
                                                   "gpu_busy_time",
                                                   "communication_time",
                                                   "exposed_communication_time",
                                                   "transfer_time",
                                                   "exposed_transfer_time",
                                                   "idle_time",
                                                   "idle_launch_time",
                                                   "idle_sync_time",
                                                   "idle_host_time",
                                                   "idle_queued_time",
                                                   "host_stretch_time",
                                                   "lead_in_time",
                                                   "tail_time",
                                                   "gpu_busy_share",
                                                   "kernel_share",
                                                   "communication_share",
                                                   "exposed_communication_share",
                                                   "exposed_transfer_share",
                                                   "idle_share",
                                                   "idle_launch_share",
                                                   "idle_sync_share",
                                                   "idle_host_share",
                                                   "idle_queued_share",
                                                   "kernel_count",
                                                   "launch_call_count",
                                                   "graph_launch_count",
                                                   "synchronization_count",
                                                   "synchronization_time",
                                                   "pageable_copy_count",
                                                   "pageable_copy_bytes",
                                                   "kernel_time_share"};

// Counters that are made of several raw metrics, and where those come from.
struct ComposedCounter {
  string_view metric_id, raw_names, section;
};
constexpr ComposedCounter kComposed[] = {
    {"sol", "sm__throughput and gpu__compute_memory_throughput", "SpeedOfLight"},
    {"warp_stall", "smsp__average_warps_issue_stalled_*_per_issue_active.ratio", "WarpStateStats"},
    {"stall_cycles", "smsp__average_warps_issue_stalled_*_per_issue_active.ratio",
     "WarpStateStats"},
};

template <typename Ids>
bool Contains(const Ids& ids, string_view id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool IsSmi(string_view id) {
  return std::any_of(SmiSources().begin(), SmiSources().end(),
                     [&](const SmiSource& source) { return source.metric_id == id; });
}

// Raw names and section of a counter metric; nullopt-like empty when `id` is none.
std::pair<std::string, std::string> CounterOf(string_view id) {
  for (const ComposedCounter& composed : kComposed) {
    if (composed.metric_id == id) {
      return {std::string(composed.raw_names), std::string(composed.section)};
    }
  }
  if (const CounterSource* source = FindCounterSource(id)) {
    return {absl::StrJoin(source->raw_names, " or "), std::string(source->section)};
  }
  return {};
}

class Explainer {
 public:
  Explainer(const CapturesSeen& seen, ResultBuilder* builder) : seen_(seen), builder_(*builder) {}

  void Explain(const std::string& id, v1::ScopeKind scope_kind) {
    const MetricDefinition* definition = builder_.catalogue().Find(id);
    if (definition == nullptr || !builder_.metrics().FindAll(id).empty()) return;
    id_ = id;
    scope_ = RunScope();
    scope_.set_kind(scope_kind != v1::SCOPE_KIND_UNSPECIFIED ? scope_kind
                                                             : definition->default_scope);
    if (Contains(kUnprofiled, id)) {
      Add(v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN,
          "a capture shows the run under a profiler, which slows the host",
          "give the step time of a run without any profiler (context step_time)");
    } else if (const auto [raw_names, section] = CounterOf(id);
               !raw_names.empty() && !(id == "kernel_time" && seen_.timeline)) {
      ExplainCounter(raw_names, section);
    } else if (IsSmi(id)) {
      ExplainSample();
    } else if (Contains(kTimeline, id)) {
      ExplainTimeline();
    }
  }

 private:
  void Add(v1::UnmeasuredReason reason, string_view detail, string_view remedy) {
    builder_.AddUnmeasured(id_, scope_, reason, detail, remedy);
  }

  // No capture of the right kind: one that could not be read may have been it.
  void AddNoCapture(string_view what) {
    if (seen_.unreadable) {
      Add(v1::UNMEASURED_REASON_CAPTURE_UNREADABLE,
          "a capture that may hold it could not be read; see the captures",
          "give that capture again in a readable form");
      return;
    }
    Add(v1::UNMEASURED_REASON_CAPTURE_KIND, absl::StrCat("none of the captures is ", what),
        absl::StrCat("add ", what));
  }

  void ExplainCounter(const std::string& raw_names, const std::string& section) {
    if (!seen_.raw_counters && !seen_.printed_counters) {
      return AddNoCapture("a recording of hardware counters (ncu)");
    }
    const std::string detail =
        absl::StrCat("the ncu export does not hold ", raw_names, " (section ", section, ")");
    if (!seen_.raw_counters) {
      return Add(v1::UNMEASURED_REASON_NOT_COLLECTED, detail,
                 "give the raw page of the same report, which has every metric that was collected");
    }
    Add(v1::UNMEASURED_REASON_NOT_COLLECTED, detail,
        absl::StrCat("collect section ", section, " for these kernels"));
  }

  void ExplainSample() {
    if (!seen_.device_samples) return AddNoCapture("output of nvidia-smi");
    Add(v1::UNMEASURED_REASON_NO_VALUE,
        "nvidia-smi was not asked for it or had no value (N/A, MIG, not supported)",
        "sample the device with that field, on the whole GPU");
  }

  void ExplainTimeline() {
    if (!seen_.timeline) return AddNoCapture("a timeline (nsys or torch.profiler)");
    Add(v1::UNMEASURED_REASON_NOT_COLLECTED, "the timeline has no rows it could be computed from",
        "record with tracing of CUDA calls and GPU activity, and mark the steps");
  }

  const CapturesSeen& seen_;
  ResultBuilder& builder_;
  std::string id_;
  v1::Scope scope_;
};

}  // namespace

std::vector<std::string> MeasurableMetrics() {
  std::set<std::string> ids = {"kernel_total_time",     "kernel_launches",
                               "pageable_copy_time",    "graph_operation_count",
                               "device_dram_bandwidth", "tool_speedup_estimate"};
  for (const string_view id : kTimeline) ids.emplace(id);
  for (const ComposedCounter& composed : kComposed) ids.emplace(composed.metric_id);
  for (const CounterSource& source : CounterSources()) ids.emplace(source.metric_id);
  for (const SmiSource& source : SmiSources()) ids.emplace(source.metric_id);
  return {ids.begin(), ids.end()};
}

void AddUnmeasuredMetrics(const v1::DelegationRequest& request, const CapturesSeen& seen,
                          ResultBuilder* builder) {
  Explainer explainer(seen, builder);
  const MetricCatalogue& catalogue = builder->catalogue();
  for (const v1::DesiredMetric& desired : request.desired_metrics()) {
    for (const std::string& id : catalogue.Expand(desired.id())) {
      explainer.Explain(id, desired.scope());
    }
  }
  if (!request.desired_metrics().empty()) return;
  for (const std::string& wanted : catalogue.default_metrics()) {
    for (const std::string& id : catalogue.Expand(wanted)) {
      explainer.Explain(id, v1::SCOPE_KIND_UNSPECIFIED);
    }
  }
}

}  // namespace solward::profiling
