#include "agents/profiling/timeline/time_model.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agents/profiling/timeline/host_activity.h"
#include "agents/profiling/timeline/region.h"
#include "agents/profiling/timeline/window.h"
#include "common/status.h"

namespace solward::timeline {
namespace {

// The union of intervals that come by start, its length summed per bucket.
class UnionLength {
 public:
  UnionLength(const std::vector<Bucket>& buckets, std::vector<int64_t>* lengths)
      : buckets_(buckets), lengths_(*lengths) {
    lengths_.assign(buckets.size(), 0);
  }

  // Both clipped to the window.
  void Add(int64_t start_ns, int64_t end_ns) {
    if (start_ns > end_ns_) {
      Flush();
      start_ns_ = start_ns;
      end_ns_ = end_ns;
    }
    end_ns_ = std::max(end_ns_, end_ns);
  }

  void Flush() {
    while (start_ns_ < end_ns_) {
      while (bucket_ + 1 < buckets_.size() && buckets_[bucket_].end_ns <= start_ns_) ++bucket_;
      int64_t end = end_ns_;
      if (bucket_ + 1 < buckets_.size()) end = std::min(end, buckets_[bucket_].end_ns);
      lengths_[bucket_] += end - start_ns_;
      start_ns_ = end;
    }
  }

 private:
  const std::vector<Bucket>& buckets_;
  std::vector<int64_t>& lengths_;
  size_t bucket_ = 0;
  int64_t start_ns_ = -1;
  int64_t end_ns_ = -1;
};

enum class OpClass { kKernel, kCommunication, kTransfer };

OpClass ClassOf(GpuOpKind kind) {
  switch (kind) {
    case GpuOpKind::kCollective:
      return OpClass::kCommunication;
    case GpuOpKind::kCopyHostToDevice:
    case GpuOpKind::kCopyDeviceToHost:
      return OpClass::kTransfer;
    default:
      return OpClass::kKernel;
  }
}

// One pass over a lane's operations, which come by start.
class LaneSweep {
 public:
  LaneSweep(const Process& process, const GpuOps& ops, const HostActivity& host, Window* window)
      : ops_(ops),
        host_(host),
        window_(*window),
        kernel_(window->buckets, &kernel_ns_),
        kernel_or_comm_(window->buckets, &kernel_or_comm_ns_),
        busy_(window->buckets, &busy_ns_),
        comm_(window->buckets, &comm_ns_),
        transfer_(window->buckets, &transfer_ns_),
        busy_until_(window->start_ns),
        flags_(process.calls.size(), 0) {}

  // Fills the buckets and the counts of `shares`.
  absl::Status Run(LaneShares* shares) {
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (ops_.start_ns[i] > window_.end_ns) {
        // Only behind steps that were cut off: what ends the last gap.
        AddGap(window_.end_ns, i);
        break;
      }
      if (ops_.start_ns[i] >= window_.start_ns) {
        AddGap(ops_.start_ns[i], i);
        Count(i, shares);
      }
      AddBusy(i);
      if (ops_.in_graph[i]) IsFirst(ops_.call[i], kGraphRuns);
    }
    for (UnionLength* sum : {&kernel_, &kernel_or_comm_, &busy_, &comm_, &transfer_}) sum->Flush();
    return FinishBuckets();
  }

 private:
  enum CallFlag : uint8_t { kGraphRuns = 1, kCountedLaunch = 2, kCountedGraph = 4 };

  // Sets the flag of the call; whether it was not set before.
  bool IsFirst(uint32_t call, CallFlag flag) {
    if (call == kNone || (flags_[call] & flag) != 0) return false;
    flags_[call] |= flag;
    return true;
  }

  void AddBusy(size_t i) {
    const int64_t start = std::max(ops_.start_ns[i], window_.start_ns);
    const int64_t end = std::min(ops_.end_ns[i], window_.end_ns);
    if (end < start) return;
    busy_until_ = std::max(busy_until_, end);
    busy_.Add(start, end);
    switch (ClassOf(ops_.kind[i])) {
      case OpClass::kKernel:
        kernel_.Add(start, end);
        kernel_or_comm_.Add(start, end);
        break;
      case OpClass::kCommunication:
        comm_.Add(start, end);
        kernel_or_comm_.Add(start, end);
        break;
      case OpClass::kTransfer:
        transfer_.Add(start, end);
        break;
    }
  }

  // The gap that operation i ends, when there is one. It lies in one bucket:
  // buckets begin where an operation starts and end where one starts or ends.
  void AddGap(int64_t until_ns, size_t i) {
    if (until_ns <= busy_until_) return;
    TimeParts& parts = BucketAt(busy_until_).parts;
    const uint32_t call = ops_.call[i];
    if (call != kNone && ops_.in_graph[i] && (flags_[call] & kGraphRuns) != 0) {
      // The graph runs already: its operations are on the device.
      parts.idle_queued += until_ns - busy_until_;
    } else {
      const GapParts gap = host_.Attribute(busy_until_, until_ns, call);
      parts.idle_queued += gap.queued;
      parts.idle_host += gap.host;
      parts.idle_sync += gap.sync;
      parts.idle_launch += gap.launch;
      parts.idle_unattributed += gap.unattributed;
      parts.host_stretches_1ms += gap.long_host;
    }
    busy_until_ = until_ns;
  }

  Bucket& BucketAt(int64_t time_ns) {
    while (bucket_ + 1 < window_.buckets.size() && window_.buckets[bucket_].end_ns <= time_ns) {
      ++bucket_;
    }
    return window_.buckets[bucket_];
  }

  void Count(size_t i, LaneShares* shares) {
    const bool is_kernel =
        ops_.kind[i] == GpuOpKind::kKernel || ops_.kind[i] == GpuOpKind::kCollective;
    if (is_kernel) {
      ++shares->kernels;
      ++BucketAt(ops_.start_ns[i]).kernels;
    }
    if (ops_.in_graph[i]) ++shares->graph_operations;
    const uint32_t call = ops_.call[i];
    if ((is_kernel || ops_.in_graph[i]) && IsFirst(call, kCountedLaunch)) ++shares->launch_calls;
    if (ops_.in_graph[i] && IsFirst(call, kCountedGraph)) ++shares->graph_launches;
  }

  absl::Status FinishBuckets() {
    for (size_t b = 0; b < window_.buckets.size(); ++b) {
      Bucket& bucket = window_.buckets[b];
      TimeParts& parts = bucket.parts;
      parts.window = bucket.end_ns - bucket.start_ns;
      parts.kernel = kernel_ns_[b];
      parts.exposed_communication = kernel_or_comm_ns_[b] - kernel_ns_[b];
      parts.exposed_transfer = busy_ns_[b] - kernel_or_comm_ns_[b];
      parts.communication = comm_ns_[b];
      parts.transfer = transfer_ns_[b];
      if (parts.busy() + parts.idle() != parts.window) {
        return MakeError(absl::StatusCode::kInternal, "TIME_MODEL_INCONSISTENT",
                         absl::StrCat("time model: expected parts that sum to ", parts.window,
                                      " ns from ", bucket.start_ns, ", found ",
                                      parts.busy() + parts.idle(), "; please report this"));
      }
    }
    return absl::OkStatus();
  }

  const GpuOps& ops_;
  const HostActivity& host_;
  Window& window_;
  std::vector<int64_t> kernel_ns_, kernel_or_comm_ns_, busy_ns_, comm_ns_, transfer_ns_;
  UnionLength kernel_, kernel_or_comm_, busy_, comm_, transfer_;
  int64_t busy_until_;
  size_t bucket_ = 0;
  std::vector<uint8_t> flags_;  // by call
};

void Accumulate(const TimeParts& from, TimeParts* to) {
  to->window += from.window;
  to->kernel += from.kernel;
  to->exposed_communication += from.exposed_communication;
  to->exposed_transfer += from.exposed_transfer;
  to->idle_queued += from.idle_queued;
  to->idle_host += from.idle_host;
  to->idle_sync += from.idle_sync;
  to->idle_launch += from.idle_launch;
  to->idle_unattributed += from.idle_unattributed;
  to->communication += from.communication;
  to->transfer += from.transfer;
  to->host_stretches_1ms += from.host_stretches_1ms;
}

void CountSynchronizations(const Process& process, const GpuOps& ops, LaneShares* shares) {
  const std::vector<bool> launching =
      ThreadsBehind(process, ops, shares->window_start_ns, shares->window_end_ns);
  const ApiCalls& calls = process.calls;
  for (uint32_t t = 0; t < launching.size(); ++t) {
    if (!launching[t]) continue;
    shares->launching_threads.push_back(t);
    for (uint32_t i = calls.thread_begin[t]; i < calls.thread_begin[t + 1]; ++i) {
      if (!IsSynchronizing(calls.kind[i]) || calls.start_ns[i] < shares->window_start_ns ||
          calls.start_ns[i] > shares->window_end_ns) {
        continue;
      }
      ++shares->synchronizations;
      if (__builtin_add_overflow(shares->synchronization_ns, calls.end_ns[i] - calls.start_ns[i],
                                 &shares->synchronization_ns)) {
        shares->synchronization_ns = std::numeric_limits<int64_t>::max();
      }
    }
  }
}

// Nothing when the region holds no GPU activity of the lane.
absl::StatusOr<std::vector<LaneShares>> SharesOfLane(const Process& process, uint32_t lane,
                                                     const ProcessRegion& region,
                                                     const CpuInterval& recorded,
                                                     const HostActivity& host) {
  const GpuOps& ops = process.lanes[lane].ops;
  Window window;
  if (!FindWindow(process, ops, region, recorded, &window)) return std::vector<LaneShares>();
  LaneShares shares;
  shares.lane = lane;
  shares.window_start_ns = window.start_ns;
  shares.window_end_ns = window.end_ns;
  shares.lead_in_ns = std::max<int64_t>(0, window.start_ns - window.region_start_ns);
  shares.tail_ns = std::max<int64_t>(0, window.region_end_ns - window.end_ns);
  shares.step_marker = window.step_marker;
  RETURN_IF_ERROR(LaneSweep(process, ops, host, &window).Run(&shares));
  for (const Bucket& bucket : window.buckets) {
    Accumulate(bucket.parts, &shares.whole);
    if (bucket.step == kNone) continue;
    Accumulate(bucket.parts, &shares.in_steps);
    shares.steps.push_back({.index = bucket.step,
                            .start_ns = bucket.start_ns,
                            .parts = bucket.parts,
                            .kernels = bucket.kernels});
  }
  CountSynchronizations(process, ops, &shares);
  return std::vector<LaneShares>{std::move(shares)};
}

template <typename Field>
bool Wanted(const Field& wanted, int32_t value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

// Every device and rank that is asked for must be there.
absl::Status CheckConstraints(const Timeline& timeline, const v1::Constraints& constraints) {
  std::set<int32_t> devices, ranks;
  for (const Process& process : timeline.processes) {
    if (!process.lanes.empty()) ranks.insert(process.rank);
    for (const GpuLane& lane : process.lanes) devices.insert(lane.device);
  }
  for (int32_t device : constraints.devices()) {
    if (devices.count(device) > 0) continue;
    return MakeError(absl::StatusCode::kNotFound, "DEVICE_NOT_FOUND",
                     absl::StrCat("constraints.devices: expected GPU activity of device ", device,
                                  ", found devices ", absl::StrJoin(devices, ", ")));
  }
  for (int32_t rank : constraints.ranks()) {
    if (ranks.count(rank) > 0) continue;
    return MakeError(
        absl::StatusCode::kNotFound, "RANK_NOT_FOUND",
        absl::StrCat("constraints.ranks: expected GPU activity of rank ", rank, ", found ranks ",
                     absl::StrJoin(ranks, ", "), " (-1: the capture does not say)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<LaneShares>> ComputeShares(const Timeline& timeline,
                                                      const v1::Region& region,
                                                      const v1::Constraints& constraints,
                                                      const TimeModelOptions& options) {
  if (!timeline.has_gpu_data) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "NO_GPU_DATA",
                     "timeline: expected GPU kernels or copies, found none; this is not an idle "
                     "GPU: record with CUDA tracing on");
  }
  RETURN_IF_ERROR(CheckConstraints(timeline, constraints));
  std::vector<LaneShares> all;
  absl::Status region_missing;
  bool region_found = false;
  for (uint32_t p = 0; p < timeline.processes.size(); ++p) {
    const Process& process = timeline.processes[p];
    if (process.lanes.empty() || !Wanted(constraints.ranks(), process.rank)) continue;
    absl::StatusOr<ProcessRegion> found = FindRegion(timeline, process, region);
    if (!found.ok()) {
      region_missing = found.status();
      continue;
    }
    region_found = true;
    const HostActivity host(process.calls, options);
    const CpuInterval recorded = RecordedSpan(process);
    for (uint32_t lane = 0; lane < process.lanes.size(); ++lane) {
      if (!Wanted(constraints.devices(), process.lanes[lane].device)) continue;
      ASSIGN_OR_RETURN(std::vector<LaneShares> shares,
                       SharesOfLane(process, lane, *found, recorded, host));
      for (LaneShares& s : shares) {
        s.process = p;
        all.push_back(std::move(s));
      }
    }
  }
  if (!region_found && !region_missing.ok()) return region_missing;
  if (all.empty()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "NO_GPU_DATA_IN_REGION",
                     "region: expected GPU activity launched inside it, found none; choose "
                     "another region or leave it out");
  }
  return all;
}

}  // namespace solward::timeline
