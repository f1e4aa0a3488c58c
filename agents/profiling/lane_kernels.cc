// Kernels of a lane by name: a summary of each, metrics of the longest.
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "agents/profiling/kernel_filter.h"
#include "agents/profiling/lane_metrics.h"
#include "common/status.h"

namespace solward::profiling {
namespace {

using timeline::GpuOpKind;
using timeline::NameId;

constexpr size_t kKernelsWithMetrics = 20;

struct KernelTime {
  NameId name = 0;
  GpuOpKind kind = GpuOpKind::kKernel;
  uint64_t launches = 0;
  int64_t total_ns = 0;
  int64_t shortest_ns = 0, longest_ns = 0;
  double squares = 0;  // of the distance from the mean
};

// Longest first. One name is one kind.
std::vector<KernelTime> KernelTimes(const Lane& lane) {
  const timeline::GpuOps& ops = lane.ops();
  std::vector<KernelTime> kernels;
  std::unordered_map<NameId, size_t> index;
  const auto for_each = [&](const auto& visit) {
    for (size_t i = 0; i < ops.size(); ++i) {
      const bool kernel =
          ops.kind[i] == GpuOpKind::kKernel || ops.kind[i] == GpuOpKind::kCollective;
      if (!kernel || !lane.run().Contains(ops.start_ns[i])) continue;
      visit(i, ops.end_ns[i] - ops.start_ns[i]);
    }
  };
  for_each([&](size_t i, int64_t duration) {
    const auto [found, inserted] = index.emplace(ops.name[i], kernels.size());
    if (inserted) kernels.push_back({ops.name[i], ops.kind[i], 0, 0, duration, duration, 0});
    KernelTime& kernel = kernels[found->second];
    ++kernel.launches;
    kernel.total_ns += duration;
    kernel.shortest_ns = std::min(kernel.shortest_ns, duration);
    kernel.longest_ns = std::max(kernel.longest_ns, duration);
  });
  for_each([&](size_t i, int64_t duration) {
    KernelTime& kernel = kernels[index.at(ops.name[i])];
    const double mean = static_cast<double>(kernel.total_ns) / static_cast<double>(kernel.launches);
    kernel.squares +=
        (static_cast<double>(duration) - mean) * (static_cast<double>(duration) - mean);
  });
  std::stable_sort(kernels.begin(), kernels.end(), [](const KernelTime& a, const KernelTime& b) {
    return a.total_ns > b.total_ns;
  });
  return kernels;
}

class KernelTable {
 public:
  explicit KernelTable(Lane& lane) : lane_(lane) {}

  absl::Status Add() {
    if (lane_.timeline().kernel_table.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const KernelFilter filter, KernelFilter::Make(lane_.options().constraints));
    const std::vector<KernelTime> kernels = KernelTimes(lane_);
    RETURN_IF_ERROR(AddTotal(kernels));
    size_t listed = 0;
    for (const KernelTime& kernel : kernels) {
      const std::string name(lane_.timeline().names.Name(kernel.name));
      if (!filter.Wants(name)) continue;
      v1::KernelSummary* summary = AddSummary(kernel, name);
      if (listed++ < kKernelsWithMetrics) RETURN_IF_ERROR(AddMetrics(kernel, name, summary));
    }
    if (listed == 0 && !lane_.options().constraints.kernel_pattern().empty()) {
      lane_.builder().AddUnmeasured("kernel_time", KernelScope("", lane_.device(), lane_.rank()),
                                    v1::UNMEASURED_REASON_NO_VALUE,
                                    "no kernel of the timeline's region matches the kernel pattern",
                                    "widen the kernel pattern or the region");
    }
    return absl::OkStatus();
  }

 private:
  v1::Measured Rows(absl::string_view raw_name, v1::Aggregation aggregation, uint64_t samples,
                    const std::string& name) const {
    v1::Measured measured =
        lane_.RowsOf(lane_.timeline().kernel_table, raw_name, lane_.run(), aggregation, samples);
    if (name.empty()) {
      AddCondition("category", "compute", measured.mutable_rows());
    } else {
      AddCondition("name", name, measured.mutable_rows());
    }
    return measured;
  }

  // Time of all compute kernels, what shares of kernel time are taken of.
  absl::Status AddTotal(const std::vector<KernelTime>& kernels) {
    int64_t total = 0;
    uint64_t launches = 0;
    for (const KernelTime& kernel : kernels) {
      if (kernel.kind != GpuOpKind::kKernel) continue;
      total += kernel.total_ns;
      launches += kernel.launches;
    }
    if (launches == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(all_,
                     lane_.AddRows("kernel_total_time", static_cast<double>(total), lane_.run(), "",
                                   Rows("duration", v1::AGGREGATION_SUM, launches, "")));
    return absl::OkStatus();
  }

  v1::KernelSummary* AddSummary(const KernelTime& kernel, const std::string& name) {
    v1::KernelSummary* summary = lane_.builder().result().add_kernels();
    summary->set_name(name);
    summary->set_device(lane_.device());
    summary->set_rank(lane_.rank());
    summary->set_launches(kernel.launches);
    summary->set_total_time_ns(kernel.total_ns);
    summary->set_category(kernel.kind == GpuOpKind::kCollective ? v1::KERNEL_CATEGORY_COMMUNICATION
                                                                : v1::KERNEL_CATEGORY_COMPUTE);
    summary->set_artifact_id(lane_.options().artifact_id);
    return summary;
  }

  absl::Status AddMetrics(const KernelTime& kernel, const std::string& name,
                          v1::KernelSummary* summary) {
    ResultBuilder& builder = lane_.builder();
    const v1::Scope scope = KernelScope(name, lane_.device(), lane_.rank());
    const auto launches = static_cast<double>(kernel.launches);
    const auto total_ns = static_cast<double>(kernel.total_ns);
    ASSIGN_OR_RETURN(const Metric* count, builder.Measure("kernel_launches", launches, scope,
                                                          Rows("kernels", v1::AGGREGATION_COUNT,
                                                               kernel.launches, name)));
    ASSIGN_OR_RETURN(const Metric* total,
                     builder.Measure("kernel_total_time", total_ns, scope,
                                     Rows("duration", v1::AGGREGATION_SUM, kernel.launches, name)));
    v1::Measured mean = Rows("duration", v1::AGGREGATION_MEAN, kernel.launches, name);
    if (kernel.launches == 1) mean.set_aggregation(v1::AGGREGATION_SINGLE);
    if (kernel.launches > 1) {
      mean.mutable_spread()->set_min(static_cast<double>(kernel.shortest_ns));
      mean.mutable_spread()->set_max(static_cast<double>(kernel.longest_ns));
      mean.mutable_spread()->set_stddev(std::sqrt(kernel.squares / (launches - 1)));
    }
    ASSIGN_OR_RETURN(const Metric* time,
                     builder.Measure("kernel_time", total_ns / launches, scope, std::move(mean)));
    for (const Metric* metric : {time, total, count}) summary->add_metric_keys(metric->key());
    if (kernel.kind != GpuOpKind::kKernel || all_ == nullptr || all_->value() <= 0) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const Metric* share,
                     builder.Derive("kernel_time_share", scope, {{"time", total}, {"all", all_}}));
    summary->add_metric_keys(share->key());
    return absl::OkStatus();
  }

  Lane& lane_;
  const Metric* all_ = nullptr;
};

}  // namespace

absl::Status AddLaneKernels(Lane& lane) { return KernelTable(lane).Add(); }

}  // namespace solward::profiling
