#include "coordinator/workflow/lane_verdict.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/workflow/host_verdict.h"
#include "coordinator/workflow/shares.h"

namespace solward::workflow {
namespace {

struct OverheadKind {
  v1::BottleneckClass bottleneck_class;
  const char* share_id;
  bool host_side;
  // What shows it, beside its share; "" ends a shorter list.
  std::array<absl::string_view, 4> evidence_ids;
};

constexpr OverheadKind kOverheadKinds[] = {
    {v1::BOTTLENECK_CLASS_COMMUNICATION_BOUND,
     "exposed_communication_share",
     false,
     {"communication_time", "exposed_communication_time", "communication_share", ""}},
    {v1::BOTTLENECK_CLASS_TRANSFER_BOUND,
     "exposed_transfer_share",
     false,
     {"transfer_time", "exposed_transfer_time", "pageable_copy_count", "pageable_copy_bytes"}},
    {v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD,
     "idle_launch_share",
     true,
     {"launch_call_count", "kernel_count", "gpu_busy_time", "idle_launch_time"}},
    {v1::BOTTLENECK_CLASS_SYNC_BOUND,
     "idle_sync_share",
     true,
     {"synchronization_count", "synchronization_time", "idle_sync_time", ""}},
    {v1::BOTTLENECK_CLASS_HOST_BOUND,
     "idle_host_share",
     true,
     {"host_stretch_time", "idle_host_time", "gpu_busy_time", ""}},
};

struct Overhead {
  const OverheadKind* kind;
  ClassEvidence entry;
  bool holds = true;  // whatever the profiler did to the host
};

// Smaller shares are within the time model's own error (shares.tsv agrees
// within one point).
constexpr double kSmallestPercent = 1;
constexpr double kSumTolerancePercent = 0.1;

v1::ScopeKind ShareKind(const LaneView& lane) {
  return lane.Find("kernel_share", v1::SCOPE_KIND_STEP) != nullptr ? v1::SCOPE_KIND_STEP
                                                                   : v1::SCOPE_KIND_RUN;
}

absl::Status CheckSum(const LaneView& lane, v1::ScopeKind kind) {
  double sum = 0;
  for (const SharePart& part : kShareParts) {
    if (!part.disjoint) continue;
    const Metric* share = lane.Find(part.share_id, kind);
    if (share == nullptr && part.share_id == kUnattributedShare) continue;
    if (share == nullptr) {
      return MakeError(absl::StatusCode::kInternal, "SHARES_INCOMPLETE",
                       absl::StrCat("timeline of device ", lane.device(), ", rank ", lane.rank(),
                                    ": expected a ", part.share_id, ", found none"));
    }
    sum += share->value();
  }
  if (std::abs(sum - 100) <= kSumTolerancePercent) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInternal, "SHARES_DO_NOT_SUM",
                   absl::StrCat("timeline of device ", lane.device(), ", rank ", lane.rank(),
                                ": expected shares that sum to 100 %, found ", sum));
}

std::vector<const Metric*> EvidenceOf(const OverheadKind& kind, const LaneView& lane) {
  std::vector<const Metric*> evidence;
  for (const absl::string_view id : kind.evidence_ids) {
    if (id.empty()) break;
    const Metric* metric = lane.Time(id);
    if (metric == nullptr) metric = lane.Find(id, v1::SCOPE_KIND_RUN);
    if (metric != nullptr) evidence.push_back(metric);
  }
  return evidence;
}

// Overheads worth naming, largest first.
absl::StatusOr<std::vector<Overhead>> Overheads(const LaneView& lane, v1::ScopeKind share_kind,
                                                ClassifyDraft& draft) {
  std::vector<Overhead> overheads;
  for (const OverheadKind& kind : kOverheadKinds) {
    const Metric* share = lane.Find(kind.share_id, share_kind);
    if (share == nullptr || share->value() < kSmallestPercent) continue;
    Overhead& overhead = overheads.emplace_back();
    overhead.kind = &kind;
    overhead.entry.bottleneck_class = kind.bottleneck_class;
    overhead.entry.share = share;
    overhead.entry.below_floor = share->value() < draft.parameters().floor_percent;
    v1::Scope scope = lane.Scope(share_kind);
    scope.set_name(ClassName(kind.bottleneck_class));
    ASSIGN_OR_RETURN(overhead.entry.recoverable,
                     draft.Derive("recoverable_overhead", scope, {{"share", share}}));
    overhead.entry.evidence = EvidenceOf(kind, lane);
    if (!kind.host_side || overhead.entry.below_floor || share_kind == v1::SCOPE_KIND_STEP) {
      continue;
    }
    ASSIGN_OR_RETURN(const FloorTest test, TestFloor(kind.bottleneck_class, lane, draft));
    overhead.holds = test.holds;
    overhead.entry.evidence.insert(overhead.entry.evidence.begin(), test.evidence.begin(),
                                   test.evidence.end());
  }
  std::stable_sort(overheads.begin(), overheads.end(), [](const Overhead& a, const Overhead& b) {
    return a.entry.share->value() > b.entry.share->value();
  });
  return overheads;
}

// The overhead that could be primary: the largest that reaches the floor. One
// whose floor test fails only when no host-side one passes it.
const Overhead* Leading(const std::vector<Overhead>& overheads) {
  const bool one_holds =
      std::any_of(overheads.begin(), overheads.end(), [](const Overhead& overhead) {
        return overhead.kind->host_side && !overhead.entry.below_floor && overhead.holds;
      });
  for (const Overhead& overhead : overheads) {
    if (overhead.entry.below_floor) continue;
    if (!overhead.holds && one_holds) continue;
    return &overhead;
  }
  return nullptr;
}

// Kernel time by limit, and what no counters rate.
absl::StatusOr<std::vector<ClassEvidence>> KernelEntries(const KernelTimeRating& kernels,
                                                         const Metric* kernel_share,
                                                         std::vector<const Metric*> evidence,
                                                         ClassifyDraft& draft) {
  std::vector<ClassEvidence> entries;
  for (const LimitGroup& group : kernels.groups) {
    ClassEvidence& entry = entries.emplace_back();
    entry.bottleneck_class = group.limit;
    entry.share = group.share;
    entry.recoverable = group.recoverable;
    entry.evidence = group.evidence;
  }
  if (kernels.UnratedPercent() < kSmallestPercent) return entries;
  ClassEvidence unrated;
  unrated.bottleneck_class = v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS;
  unrated.share = kernel_share;
  unrated.evidence = std::move(evidence);
  if (kernels.any() && kernel_share != nullptr) {
    v1::Scope scope = kernel_share->scope();
    scope.set_name(ClassName(unrated.bottleneck_class));
    ASSIGN_OR_RETURN(unrated.share, draft.Derive("limit_share", scope,
                                                 {{"kernel", kernel_share},
                                                  {"part", kernels.unrated_time_share}}));
  } else if (kernels.any()) {
    unrated.share = kernels.unrated_time_share;
  }
  // The largest share of kernel time speaks for kernel time.
  const bool leads =
      !kernels.any() || kernels.UnratedPercent() > kernels.groups.front().time_share->value();
  entries.insert(leads ? entries.begin() : entries.end(), std::move(unrated));
  return entries;
}

// The primary class first, the others by what they could bring.
void Rank(const ClassEvidence& primary, std::vector<ClassEvidence> others, Verdict& verdict) {
  std::stable_sort(others.begin(), others.end(),
                   [](const ClassEvidence& a, const ClassEvidence& b) {
                     if (a.recoverable == nullptr || b.recoverable == nullptr) {
                       return a.recoverable != nullptr && b.recoverable == nullptr;
                     }
                     return a.recoverable->value() > b.recoverable->value();
                   });
  verdict.ranking.push_back(primary);
  for (ClassEvidence& other : others) {
    if (other.bottleneck_class != primary.bottleneck_class) {
      verdict.ranking.push_back(std::move(other));
    }
  }
}

}  // namespace

v1::BottleneckClass Verdict::primary() const {
  return ranking.empty() ? v1::BOTTLENECK_CLASS_UNDETERMINED_NO_EVIDENCE
                         : ranking.front().bottleneck_class;
}

bool HasShares(const LaneView& lane) {
  return lane.Find("kernel_share", v1::SCOPE_KIND_RUN) != nullptr;
}

const Metric* ShareOf(v1::BottleneckClass bottleneck_class, const LaneView& lane) {
  const v1::ScopeKind kind = ShareKind(lane);
  for (const OverheadKind& overhead : kOverheadKinds) {
    if (overhead.bottleneck_class == bottleneck_class) return lane.Find(overhead.share_id, kind);
  }
  return lane.Find("kernel_share", kind);
}

double LargestOverheadPercent(const LaneView& lane) {
  double largest = 0;
  for (const OverheadKind& kind : kOverheadKinds) {
    const Metric* share = lane.Find(kind.share_id, ShareKind(lane));
    if (share != nullptr) largest = std::max(largest, share->value());
  }
  return largest;
}

absl::StatusOr<Verdict> JudgeLane(const LaneView& lane, const std::vector<RatedKernel>& rated,
                                  ClassifyDraft& draft) {
  const v1::ScopeKind kind = ShareKind(lane);
  RETURN_IF_ERROR(CheckSum(lane, kind));
  const Metric* kernel_share = lane.Find("kernel_share", kind);
  Verdict verdict;
  verdict.from_timeline = true;
  verdict.rescaled = kind == v1::SCOPE_KIND_STEP;
  ASSIGN_OR_RETURN(verdict.kernels, RateTimeline(lane, *kernel_share, rated, draft));
  ASSIGN_OR_RETURN(const std::vector<Overhead> overheads, Overheads(lane, kind, draft));
  if (!overheads.empty()) verdict.largest_overhead = overheads.front().entry.share;
  verdict.unattributed = lane.Find(kUnattributedShare, kind);

  std::vector<const Metric*> busy;
  for (const char* id : {"gpu_busy_share", "idle_queued_share"}) {
    if (const Metric* share = lane.Find(id, kind)) busy.push_back(share);
  }
  ASSIGN_OR_RETURN(const std::vector<ClassEvidence> kernels,
                   KernelEntries(verdict.kernels, kernel_share, busy, draft));
  std::vector<ClassEvidence> all = kernels;
  for (const Overhead& overhead : overheads) all.push_back(overhead.entry);

  const Overhead* leading = Leading(overheads);
  const bool kernels_offer_more =
      leading != nullptr && verdict.kernels.recoverable != nullptr &&
      verdict.kernels.recoverable->value() > leading->entry.recoverable->value();
  if (leading == nullptr || kernels_offer_more) {
    ClassEvidence primary = kernels.empty() ? ClassEvidence{} : kernels.front();
    if (kernels_offer_more && primary.recoverable == nullptr) {
      primary = kernels[1];  // what is unrated offers nothing that is known
    }
    Rank(primary, all, verdict);
    return verdict;
  }
  if (leading->holds) {
    Rank(leading->entry, all, verdict);
    verdict.host_side_failed =
        overheads.front().entry.share->value() > leading->entry.share->value();
    return verdict;
  }
  ClassEvidence undetermined;
  undetermined.bottleneck_class = v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION;
  undetermined.share = leading->entry.share;
  undetermined.evidence = leading->entry.evidence;
  ASSIGN_OR_RETURN(verdict.flip_step_time, FlipStepTime(lane, draft));
  if (verdict.flip_step_time != nullptr) {
    undetermined.evidence.insert(undetermined.evidence.begin(), verdict.flip_step_time);
  }
  Rank(undetermined, all, verdict);
  return verdict;
}

absl::StatusOr<Verdict> JudgeCounters(const std::vector<CountedKernel>& counted,
                                      const std::vector<RatedKernel>& rated, ClassifyDraft& draft) {
  Verdict verdict;
  ASSIGN_OR_RETURN(verdict.kernels, RateCounted(counted, rated, draft));
  ASSIGN_OR_RETURN(std::vector<ClassEvidence> kernels,
                   KernelEntries(verdict.kernels, nullptr, {}, draft));
  if (!kernels.empty()) Rank(kernels.front(), kernels, verdict);
  return verdict;
}

}  // namespace solward::workflow
