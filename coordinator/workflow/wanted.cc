// Which metrics answer the client, and which wanted ones are not there.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "coordinator/workflow/kernel_names.h"
#include "coordinator/workflow/measure_draft.h"
#include "coordinator/workflow/metric_view.h"

namespace solward::workflow {
namespace {

// The kernel table has the rest.
constexpr size_t kKernelsPerMetric = 10;
// A metric of several parts (the stall reasons): the largest of the longest kernels.
constexpr size_t kKernelsWithParts = 3;
constexpr size_t kPartsPerKernel = 5;

std::string KernelOf(const v1::Scope& scope) {
  return NormalKernelName(absl::string_view(scope.name()).substr(0, scope.name().rfind('|')));
}

// Longest kernel first, by normal name.
std::map<std::string, double> KernelTimes(const v1::Measurement& measurement) {
  std::map<std::string, double> times;
  for (const v1::KernelSummary& summary : measurement.kernels()) {
    double& time = times[NormalKernelName(summary.name())];
    time = std::max(time, static_cast<double>(summary.total_time_ns()));
  }
  return times;
}

// A metric among those of other captures that may say the same.
struct Candidate {
  const Metric* metric;
  size_t tool_rank = 0;
  std::string artifact;
};

bool SupersededBy(const Candidate& mine, const Candidate& theirs, bool theirs_is_earlier) {
  const v1::Scope& a = mine.metric->scope();
  const v1::Scope& b = theirs.metric->scope();
  if (mine.artifact == theirs.artifact) return false;
  if (!SameLane(a.device(), a.rank(), b.device(), b.rank())) return false;
  return theirs.tool_rank < mine.tool_rank ||
         (theirs.tool_rank == mine.tool_rank && theirs_is_earlier);
}

// Of captures that say the same the most trusted tool's metric, in the order given.
std::vector<const Metric*> Preferred(const MeasureDraft& draft,
                                     const std::vector<const Metric*>& metrics) {
  std::map<std::tuple<int, int, std::string>, std::vector<Candidate>> subjects;
  for (const Metric* metric : metrics) {
    const v1::Measured* source = MeasuredSource(draft.metrics, *metric);
    Candidate candidate{metric};
    if (source != nullptr) {
      candidate.tool_rank = ToolRank(draft.catalogue(), source->tool());
      candidate.artifact = source->artifact_id();
    }
    const v1::Scope& scope = metric->scope();
    subjects[{scope.kind(), scope.device(), NormalScopeName(scope.name())}].push_back(candidate);
  }
  std::set<const Metric*> superseded;
  for (const auto& [subject, candidates] : subjects) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      for (size_t j = 0; j < candidates.size(); ++j) {
        if (i != j && SupersededBy(candidates[i], candidates[j], j < i)) {
          superseded.insert(candidates[i].metric);
        }
      }
    }
  }
  std::vector<const Metric*> kept;
  for (const Metric* metric : metrics) {
    if (superseded.count(metric) == 0) kept.push_back(metric);
  }
  return kept;
}

// Parts of a metric ("kernel|read") stand for it only when there is no whole.
void DropParts(std::vector<const Metric*>& metrics) {
  const auto is_part = [](const Metric* metric) { return NamesPart(metric->scope().name()); };
  if (std::all_of(metrics.begin(), metrics.end(), is_part)) return;
  metrics.erase(std::remove_if(metrics.begin(), metrics.end(), is_part), metrics.end());
}

// In scope UNSPECIFIED: the catalogue's own scope, with steps beside it (the
// shares of the unprofiled step, the MFU of the step); any other when there is
// none.
std::vector<const Metric*> InWantedScope(const MeasureDraft& draft, const WantedMetric& wanted) {
  const std::vector<const Metric*> all = draft.metrics.FindAll(wanted.id);
  const v1::ScopeKind first = wanted.scope != v1::SCOPE_KIND_UNSPECIFIED
                                  ? wanted.scope
                                  : draft.catalogue().Find(wanted.id)->default_scope;
  std::vector<const Metric*> chosen, steps, others;
  for (const Metric* metric : all) {
    const v1::Scope& scope = metric->scope();
    if (scope.kind() == first) {
      // One call's own metric stands with the call.
      if (scope.kind() == v1::SCOPE_KIND_KERNEL || scope.name().empty()) chosen.push_back(metric);
    } else if (scope.kind() == v1::SCOPE_KIND_STEP && scope.name().empty()) {
      steps.push_back(metric);
    } else {
      others.push_back(metric);
    }
  }
  DropParts(chosen);
  DropParts(others);
  if (wanted.scope != v1::SCOPE_KIND_UNSPECIFIED) return chosen;
  chosen.insert(chosen.end(), steps.begin(), steps.end());
  return chosen.empty() ? others : chosen;
}

// Metrics of kernels: longest kernel first, within one the largest first.
void SortKernels(const std::map<std::string, double>& times, std::vector<const Metric*>& metrics) {
  const auto time = [&](const Metric* metric) {
    const auto found = times.find(KernelOf(metric->scope()));
    return found == times.end() ? 0.0 : found->second;
  };
  std::stable_sort(metrics.begin(), metrics.end(), [&](const Metric* a, const Metric* b) {
    const bool kernel_a = a->scope().kind() == v1::SCOPE_KIND_KERNEL;
    const bool kernel_b = b->scope().kind() == v1::SCOPE_KIND_KERNEL;
    if (!kernel_a || !kernel_b) return kernel_a && !kernel_b;
    if (time(a) != time(b)) return time(a) > time(b);
    const std::string name_a = KernelOf(a->scope()), name_b = KernelOf(b->scope());
    if (name_a != name_b) return name_a < name_b;
    return a->value() > b->value();
  });
}

// Sorted metrics, cut to what a reader takes in.
std::vector<const Metric*> FirstOf(const std::vector<const Metric*>& sorted) {
  std::vector<const Metric*> first;
  std::map<std::string, size_t> metrics_of_kernel;
  for (const Metric* metric : sorted) {
    if (metric->scope().kind() == v1::SCOPE_KIND_KERNEL) {
      const bool part = NamesPart(metric->scope().name());
      const size_t kernels = part ? kKernelsWithParts : kKernelsPerMetric;
      const auto [count, is_new] = metrics_of_kernel.try_emplace(KernelOf(metric->scope()), 0);
      ++count->second;
      if (metrics_of_kernel.size() > kernels || (part && count->second > kPartsPerKernel)) continue;
    }
    first.push_back(metric);
  }
  return first;
}

bool Measured(const MeasureDraft& draft, const v1::UnmeasuredMetric& unmeasured) {
  for (const Metric* metric : draft.metrics.FindAll(unmeasured.id())) {
    const v1::Scope& wanted = unmeasured.scope();
    const v1::Scope& scope = metric->scope();
    const bool kind = wanted.kind() == v1::SCOPE_KIND_UNSPECIFIED || wanted.kind() == scope.kind();
    const bool name = wanted.name().empty() || KernelOf(wanted) == KernelOf(scope);
    if (kind && name) return true;
  }
  return false;
}

// What another capture did measure, and repetitions, go.
void DropMeasured(MeasureDraft& draft) {
  google::protobuf::RepeatedPtrField<v1::UnmeasuredMetric> kept;
  std::set<std::tuple<std::string, int, std::string>> seen;
  for (v1::UnmeasuredMetric& unmeasured : *draft.out.mutable_unmeasured()) {
    if (Measured(draft, unmeasured)) continue;
    const v1::Scope& scope = unmeasured.scope();
    if (!seen.insert({unmeasured.id(), scope.kind(), scope.name()}).second) continue;
    *kept.Add() = std::move(unmeasured);
  }
  draft.out.mutable_unmeasured()->Swap(&kept);
}

// A wanted metric that nobody measured or explained.
void Explain(const WantedMetric& wanted, MeasureDraft& draft) {
  for (const v1::UnmeasuredMetric& unmeasured : draft.out.unmeasured()) {
    if (unmeasured.id() == wanted.id) return;
  }
  const v1::ScopeKind scope = wanted.scope != v1::SCOPE_KIND_UNSPECIFIED
                                  ? wanted.scope
                                  : draft.catalogue().Find(wanted.id)->default_scope;
  if (draft.out.captures().empty() && draft.out.artifacts().empty()) {
    draft.AddUnmeasured(wanted.id, scope, v1::UNMEASURED_REASON_NO_SPECIALIST,
                        "no specialist gave a result", "start a specialist that can measure it");
    return;
  }
  absl::string_view remedy = "add a timeline of the workload";
  if (scope == v1::SCOPE_KIND_KERNEL) remedy = "add hardware counters of the kernels";
  if (scope == v1::SCOPE_KIND_DEVICE) remedy = "add samples of the device's own monitoring";
  draft.AddUnmeasured(wanted.id, scope, v1::UNMEASURED_REASON_CAPTURE_KIND,
                      "no capture of this analysis holds it", remedy);
}

}  // namespace

void SelectWanted(MeasureDraft& draft) {
  const std::map<std::string, double> times = KernelTimes(draft.out);
  DropMeasured(draft);
  std::set<std::string> listed;
  for (const WantedMetric& wanted : draft.Wanted()) {
    std::vector<const Metric*> metrics = Preferred(draft, InWantedScope(draft, wanted));
    SortKernels(times, metrics);
    for (const Metric* metric : FirstOf(metrics)) {
      if (listed.insert(metric->key()).second) draft.out.add_wanted_keys(metric->key());
    }
    if (metrics.empty()) Explain(wanted, draft);
  }
}

}  // namespace solward::workflow
