#include "coordinator/workflow/kernel_limits.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "common/status.h"
#include "coordinator/workflow/kernel_names.h"

namespace solward::workflow {

Limit LimitOf(double compute, double memory, const ClassificationParameters& parameters) {
  Limit limit;
  if (std::max(compute, memory) < parameters.limit_threshold_percent) {
    limit.first = v1::BOTTLENECK_CLASS_LATENCY_BOUND;
    return limit;
  }
  limit.first = v1::BOTTLENECK_CLASS_COMPUTE_BOUND;
  v1::BottleneckClass other = v1::BOTTLENECK_CLASS_MEMORY_BOUND;
  if (memory > compute) std::swap(limit.first, other);
  if (std::abs(compute - memory) <= parameters.limit_margin_percent) limit.second = other;
  return limit;
}

double KernelTimeRating::UnratedPercent() const {
  return unrated_time_share == nullptr ? 100 : unrated_time_share->value();
}

namespace {

// The largest warp stall of each kernel, by normal name.
std::map<std::string, const Metric*> DominatingStalls(const MetricSet& metrics) {
  std::map<std::string, const Metric*> largest;
  for (const Metric* stall : metrics.FindAll("warp_stall")) {
    const std::string& name = stall->scope().name();
    const absl::string_view kernel = absl::string_view(name).substr(0, name.rfind('|'));
    const Metric*& known = largest[NormalKernelName(kernel)];
    if (known == nullptr || stall->value() > known->value()) known = stall;
  }
  return largest;
}

// Counters by the names under which a timeline may know the kernel.
class RatedByName {
 public:
  explicit RatedByName(const std::vector<RatedKernel>& rated) {
    for (const RatedKernel& kernel : rated) {
      exact_.try_emplace(kernel.counters.normal_name, &kernel);
      by_base_[BaseKernelName(kernel.counters.name)].push_back(&kernel);
    }
  }

  // The kernel of exactly this name; of this function when one side printed the
  // function's name alone and only one kernel has it.
  const RatedKernel* Find(absl::string_view name) const {
    const std::string normal = NormalKernelName(name);
    if (const auto exact = exact_.find(normal); exact != exact_.end()) return exact->second;
    const std::string base = BaseKernelName(name);
    const auto same_base = by_base_.find(base);
    if (same_base == by_base_.end() || same_base->second.size() != 1) return nullptr;
    const RatedKernel* only = same_base->second.front();
    return normal == base || only->counters.normal_name == base ? only : nullptr;
  }

 private:
  std::map<std::string, const RatedKernel*> exact_;
  std::map<std::string, std::vector<const RatedKernel*>> by_base_;
};

// One rated kernel with its part of the time.
struct WeighedKernel {
  const RatedKernel* rated;
  std::string name;
  const Metric* time_share;
  const Metric* share;
};

v1::Scope ClassScope(const v1::Scope& like, v1::BottleneckClass limit) {
  v1::Scope scope = like;
  scope.set_name(ClassName(limit));
  return scope;
}

v1::KernelLimit ToProto(const WeighedKernel& kernel) {
  v1::KernelLimit limit;
  limit.set_kernel(kernel.name);
  limit.set_limit(kernel.rated->limit.first);
  limit.set_second_limit(kernel.rated->limit.second);
  limit.set_utilization_key(kernel.rated->utilization->key());
  limit.set_time_share_key(kernel.time_share->key());
  if (kernel.rated->stall != nullptr) limit.set_stall_key(kernel.rated->stall->key());
  return limit;
}

// What shows a kernel's limit: both throughputs, the levels of memory, occupancy.
std::vector<const Metric*> EvidenceOf(const RatedKernel& kernel) {
  std::vector<const Metric*> evidence;
  for (const char* id : {"compute_throughput", "memory_throughput", "dram_throughput",
                         "l2_throughput", "l1_throughput", "achieved_occupancy", "mfu"}) {
    if (const Metric* metric = kernel.counters.Find(id)) evidence.push_back(metric);
  }
  if (kernel.stall != nullptr) evidence.push_back(kernel.stall);
  return evidence;
}

absl::StatusOr<LimitGroup> MakeGroup(v1::BottleneckClass limit, const v1::Scope& like,
                                     const std::vector<WeighedKernel>& kernels,
                                     ClassifyDraft& draft) {
  const v1::Scope scope = ClassScope(like, limit);
  std::vector<const Metric*> time_shares, shares, recoverable;
  LimitGroup group;
  group.limit = limit;
  for (const WeighedKernel& kernel : kernels) {
    if (kernel.rated->limit.first != limit) continue;
    if (time_shares.empty()) group.evidence = EvidenceOf(*kernel.rated);
    time_shares.push_back(kernel.time_share);
    shares.push_back(kernel.share);
    ASSIGN_OR_RETURN(
        const Metric* above_roof,
        draft.Derive("recoverable_kernel_time", kernel.rated->counters.Scope(),
                     {{"share", kernel.share}, {"utilization", kernel.rated->utilization}}));
    recoverable.push_back(above_roof);
  }
  const bool of_window = shares.empty() || shares.front() != time_shares.front();
  ASSIGN_OR_RETURN(group.time_share, draft.Sum("limit_time_share_sum", scope, time_shares));
  group.share = group.time_share;
  if (of_window) {
    ASSIGN_OR_RETURN(group.share, draft.Sum("limit_share_sum", scope, shares));
  }
  ASSIGN_OR_RETURN(group.recoverable, draft.Sum("recoverable_sum", scope, recoverable));
  return group;
}

// Groups, sums and limits of kernels that are sorted by time, longest first.
absl::StatusOr<KernelTimeRating> Group(const std::vector<WeighedKernel>& kernels,
                                       const v1::Scope& scope, ClassifyDraft& draft) {
  KernelTimeRating rating;
  if (kernels.empty()) return rating;
  std::vector<const Metric*> time_shares, recoverable;
  for (const v1::BottleneckClass limit :
       {v1::BOTTLENECK_CLASS_COMPUTE_BOUND, v1::BOTTLENECK_CLASS_MEMORY_BOUND,
        v1::BOTTLENECK_CLASS_LATENCY_BOUND}) {
    ASSIGN_OR_RETURN(LimitGroup group, MakeGroup(limit, scope, kernels, draft));
    if (group.time_share == nullptr) continue;
    time_shares.push_back(group.time_share);
    recoverable.push_back(group.recoverable);
    rating.groups.push_back(std::move(group));
  }
  ASSIGN_OR_RETURN(const Metric* rated, draft.Sum("limit_time_share_sum", scope, time_shares));
  ASSIGN_OR_RETURN(rating.unrated_time_share,
                   draft.Derive("limit_time_rest", scope, {{"rated", rated}}));
  ASSIGN_OR_RETURN(rating.recoverable, draft.Sum("recoverable_sum", scope, recoverable));
  std::stable_sort(rating.groups.begin(), rating.groups.end(),
                   [](const LimitGroup& a, const LimitGroup& b) {
                     return a.time_share->value() > b.time_share->value();
                   });
  for (const WeighedKernel& kernel : kernels) rating.limits.push_back(ToProto(kernel));
  return rating;
}

void SortByTime(std::vector<WeighedKernel>& kernels) {
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const WeighedKernel& a, const WeighedKernel& b) {
                     return a.time_share->value() > b.time_share->value();
                   });
}

bool OfLane(const v1::KernelSummary& summary, const LaneView& lane) {
  return summary.artifact_id() == lane.timeline().artifact_id() &&
         summary.device() == lane.device() && summary.rank() == lane.rank() &&
         summary.category() != v1::KERNEL_CATEGORY_COMMUNICATION;
}

const Metric* MetricOf(const v1::KernelSummary& summary, absl::string_view id,
                       const MetricSet& metrics) {
  for (const std::string& key : summary.metric_keys()) {
    const Metric* metric = metrics.FindKey(key);
    if (metric != nullptr && metric->id() == id) return metric;
  }
  return nullptr;
}

// Time of all profiled launches of a kernel; nullptr when unknown.
absl::StatusOr<const Metric*> TotalTime(const CountedKernel& kernel, ClassifyDraft& draft) {
  if (const Metric* total = kernel.Find("kernel_total_time")) return total;
  const Metric* time = kernel.Find("kernel_time");
  const Metric* launches = kernel.Find("kernel_launches");
  if (time == nullptr || launches == nullptr) return time;
  return draft.Derive("total_time_of_launches", kernel.Scope(),
                      {{"time", time}, {"launches", launches}});
}

}  // namespace

std::vector<RatedKernel> RateKernels(const std::vector<CountedKernel>& counted,
                                     const ClassifyDraft& draft) {
  const std::map<std::string, const Metric*> stalls = DominatingStalls(draft.metrics());
  std::vector<RatedKernel> rated;
  for (const CountedKernel& kernel : counted) {
    const Metric* compute = kernel.Find("compute_throughput");
    const Metric* memory = kernel.Find("memory_throughput");
    if (compute == nullptr || memory == nullptr) continue;
    if (kernel.category == v1::KERNEL_CATEGORY_COMMUNICATION) continue;
    RatedKernel& added = rated.emplace_back();
    added.counters = kernel;
    added.limit = LimitOf(compute->value(), memory->value(), draft.parameters());
    added.utilization = memory->value() > compute->value() ? memory : compute;
    if (added.limit.first == v1::BOTTLENECK_CLASS_LATENCY_BOUND) {
      const auto stall = stalls.find(kernel.normal_name);
      if (stall != stalls.end()) added.stall = stall->second;
    }
  }
  return rated;
}

absl::StatusOr<KernelTimeRating> RateTimeline(const LaneView& lane, const Metric& kernel_share,
                                              const std::vector<RatedKernel>& rated,
                                              ClassifyDraft& draft) {
  const RatedByName by_name(rated);
  std::vector<const v1::KernelSummary*> unrated;
  std::vector<WeighedKernel> kernels;
  for (const v1::KernelSummary& summary : draft.measurement().kernels()) {
    if (!OfLane(summary, lane)) continue;
    const RatedKernel* counters = by_name.Find(summary.name());
    const Metric* time_share = MetricOf(summary, "kernel_time_share", draft.metrics());
    if (counters == nullptr || time_share == nullptr) {
      unrated.push_back(&summary);
      continue;
    }
    ASSIGN_OR_RETURN(
        const Metric* share,
        draft.Derive("limit_share", KernelScope(summary.name(), lane.device(), lane.rank()),
                     {{"kernel", &kernel_share}, {"part", time_share}}));
    kernels.push_back({counters, summary.name(), time_share, share});
  }
  SortByTime(kernels);
  ASSIGN_OR_RETURN(KernelTimeRating rating, Group(kernels, kernel_share.scope(), draft));
  std::stable_sort(unrated.begin(), unrated.end(),
                   [](const v1::KernelSummary* a, const v1::KernelSummary* b) {
                     return a->total_time_ns() > b->total_time_ns();
                   });
  for (const v1::KernelSummary* summary : unrated) rating.unrated.push_back(summary->name());
  return rating;
}

absl::StatusOr<KernelTimeRating> RateCounted(const std::vector<CountedKernel>& counted,
                                             const std::vector<RatedKernel>& rated,
                                             ClassifyDraft& draft) {
  KernelTimeRating rating;
  std::map<std::pair<int, int>, double> time_by_lane;
  std::pair<int, int> lane = {-1, -1};
  double longest = -1;
  for (const CountedKernel& kernel : counted) {
    double& time = time_by_lane[{kernel.device, kernel.rank}];
    time += kernel.total_ns;
    if (time > longest) lane = {kernel.device, kernel.rank};
    longest = std::max(longest, time);
  }

  std::vector<const Metric*> totals;
  std::vector<std::pair<const RatedKernel*, const Metric*>> with_time;
  std::vector<std::string> unrated;
  for (const CountedKernel& kernel : counted) {
    if (std::make_pair(kernel.device, kernel.rank) != lane) continue;
    if (kernel.category == v1::KERNEL_CATEGORY_COMMUNICATION) continue;
    const auto found = std::find_if(rated.begin(), rated.end(), [&](const RatedKernel& other) {
      return other.counters.summary == kernel.summary;
    });
    ASSIGN_OR_RETURN(const Metric* total, TotalTime(kernel, draft));
    if (total != nullptr) totals.push_back(total);
    if (total == nullptr || found == rated.end()) {
      unrated.push_back(kernel.name);
    } else {
      with_time.emplace_back(&*found, total);
    }
  }

  const v1::Scope scope = RunScope(lane.first, lane.second);
  ASSIGN_OR_RETURN(const Metric* all, draft.Sum("total_time_sum", scope, totals));
  std::vector<WeighedKernel> kernels;
  for (const auto& [kernel, total] : with_time) {
    if (all->value() <= 0) break;
    ASSIGN_OR_RETURN(const Metric* share, draft.Derive("limit_time_share", kernel->counters.Scope(),
                                                       {{"part", total}, {"all", all}}));
    kernels.push_back({kernel, kernel->counters.name, share, share});
  }
  SortByTime(kernels);
  ASSIGN_OR_RETURN(rating, Group(kernels, scope, draft));
  rating.unrated = std::move(unrated);
  return rating;
}

}  // namespace solward::workflow
