// The Metrics section: what was wanted, where the time goes, the kernels.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "coordinator/workflow/kernel_names.h"
#include "coordinator/workflow/report_input.h"
#include "coordinator/workflow/shares.h"

namespace solward::workflow {
namespace {

constexpr size_t kMostKernels = 10;

// Shown in the same row as a wanted metric.
struct Companions {
  const char* id;
  std::vector<const char*> of_kernel;   // of the same kernel
  std::vector<const char*> of_formula;  // inputs of the metric's own formula
};

const std::vector<Companions>& AllCompanions() {
  static const std::vector<Companions>* const companions = new std::vector<Companions>{
      {"mfu", {"tensor_pipe_utilization", "sm_clock", "clock_share"}, {"peak"}},
      {"sol", {"compute_throughput", "memory_throughput", "dram_throughput"}, {}},
      {"dram_bandwidth", {"dram_bandwidth_share", "dram_bandwidth_device_share"}, {}},
      {"achieved_occupancy", {"theoretical_occupancy"}, {}},
      {"arithmetic_intensity", {"kernel_flops", "attainable_flops"}, {}},
  };
  return *companions;
}

// The row's columns of the kernel table, in order.
constexpr const char* kKernelColumns[] = {
    "kernel_time_share",  "kernel_launches",    "kernel_time",
    "compute_throughput", "memory_throughput",  "dram_throughput",
    "dram_bandwidth",     "achieved_occupancy", "tensor_pipe_utilization",
};

// What stands under the shares of a timeline; RUN before STEP.
struct TimeFigure {
  const char* id;
  v1::ScopeKind kind;
};
constexpr TimeFigure kWindowFigures[] = {
    {"gpu_busy_share", v1::SCOPE_KIND_RUN},
    {"communication_share", v1::SCOPE_KIND_RUN},
    {"window_time", v1::SCOPE_KIND_RUN},
    {"step_count", v1::SCOPE_KIND_RUN},
    {"profiled_step_time", v1::SCOPE_KIND_STEP},
    {"gpu_busy_time", v1::SCOPE_KIND_STEP},
    {"kernel_count", v1::SCOPE_KIND_STEP},
    {"launch_call_count", v1::SCOPE_KIND_STEP},
    {"graph_launch_count", v1::SCOPE_KIND_RUN},
    {"graph_operation_count", v1::SCOPE_KIND_RUN},
    {"synchronization_count", v1::SCOPE_KIND_STEP},
    {"lead_in_time", v1::SCOPE_KIND_RUN},
    {"tail_time", v1::SCOPE_KIND_RUN},
};
constexpr TimeFigure kRescaledFigures[] = {
    {"gpu_busy_share", v1::SCOPE_KIND_STEP},
    {"communication_share", v1::SCOPE_KIND_STEP},
    {"dilation", v1::SCOPE_KIND_RUN},
};

class MetricsWriter {
 public:
  explicit MetricsWriter(ReportInput& input) : input_(input) {}

  absl::StatusOr<v1::MetricsSection> Write() {
    AddWantedRows();
    for (const v1::Timeline& timeline : input_.measurement().timelines()) {
      RETURN_IF_ERROR(AddTimeTable(timeline, /*rescaled=*/false));
      RETURN_IF_ERROR(AddTimeTable(timeline, /*rescaled=*/true));
    }
    AddKernels();
    *section_.mutable_unmeasured() = input_.measurement().unmeasured();
    return std::move(section_);
  }

 private:
  void AddWantedRows();
  void AddCompanions(const v1::Metric& metric, v1::MetricRow& row);
  void AddCompanion(const v1::Metric* companion, v1::MetricRow& row) {
    if (companion != nullptr && shown_.insert(companion->key()).second) {
      row.add_companion_keys(companion->key());
    }
  }
  absl::Status AddTimeTable(const v1::Timeline& timeline, bool rescaled);
  absl::StatusOr<const v1::Metric*> SumOf(
      const std::map<absl::string_view, const v1::Metric*>& shares);
  // The timeline's own metric first, then one of its device and rank.
  const v1::Metric* OfTimeline(const v1::Timeline& timeline, absl::string_view id,
                               v1::ScopeKind kind) const;
  std::string CaptureLabel(const std::string& artifact_id) const;
  void AddKernels();

  ReportInput& input_;
  v1::MetricsSection section_;
  std::set<std::string> shown_;
};

void MetricsWriter::AddWantedRows() {
  const auto& wanted = input_.measurement().wanted_keys();
  shown_.insert(wanted.begin(), wanted.end());
  for (const std::string& key : wanted) {
    v1::MetricRow* row = section_.add_rows();
    row->set_metric_key(key);
    const v1::Metric* metric = input_.Find(key);
    if (metric != nullptr) AddCompanions(*metric, *row);
  }
}

void MetricsWriter::AddCompanions(const v1::Metric& metric, v1::MetricRow& row) {
  for (const Companions& companions : AllCompanions()) {
    if (metric.id() != companions.id) continue;
    for (const char* name : companions.of_formula) AddCompanion(input_.InputOf(metric, name), row);
    if (metric.scope().name().empty()) continue;
    for (const char* id : companions.of_kernel) {
      const v1::Metric* companion = input_.FindOfKernel(id, metric.scope().name());
      AddCompanion(companion, row);
      if (companion == nullptr) continue;
      // The peak a share is taken of stands beside it.
      AddCompanion(input_.InputOf(*companion, "peak"), row);
      AddCompanion(input_.InputOf(*companion, "peak_clock"), row);
    }
  }
}

const v1::Metric* MetricsWriter::OfTimeline(const v1::Timeline& timeline, absl::string_view id,
                                            v1::ScopeKind kind) const {
  for (const std::string& key : timeline.metric_keys()) {
    const v1::Metric* metric = input_.Find(key);
    if (metric != nullptr && metric->id() == id && metric->scope().kind() == kind &&
        metric->scope().name().empty()) {
      return metric;
    }
  }
  // Another timeline of the same place has its own; only a single one may take
  // what is not listed as its own.
  return input_.measurement().timelines_size() > 1
             ? nullptr
             : input_.Find(id, kind, timeline.device(), timeline.rank());
}

std::string MetricsWriter::CaptureLabel(const std::string& artifact_id) const {
  for (const v1::CaptureOutcome& capture : input_.measurement().captures()) {
    if (capture.artifact_id() == artifact_id) return capture.label();
  }
  return "";
}

// nullptr when a part is missing. Most captures hold the cause of every gap.
absl::StatusOr<const v1::Metric*> MetricsWriter::SumOf(
    const std::map<absl::string_view, const v1::Metric*>& shares) {
  static constexpr std::pair<const char*, const char*> kTerms[] = {
      {"kernel", "kernel_share"},
      {"communication", "exposed_communication_share"},
      {"transfer", "exposed_transfer_share"},
      {"queued", "idle_queued_share"},
      {"host", "idle_host_share"},
      {"sync", "idle_sync_share"},
      {"launch", "idle_launch_share"},
  };
  std::vector<std::pair<std::string, const v1::Metric*>> inputs;
  for (const auto& [name, id] : kTerms) {
    const auto share = shares.find(id);
    if (share == shares.end()) return nullptr;
    inputs.emplace_back(name, share->second);
  }
  const v1::Scope scope = inputs.front().second->scope();
  const auto unattributed = shares.find("idle_unattributed_share");
  if (unattributed == shares.end()) return input_.Derive("share_sum", scope, inputs);
  inputs.emplace_back("unattributed", unattributed->second);
  return input_.Derive("share_sum_with_unattributed", scope, inputs);
}

absl::Status MetricsWriter::AddTimeTable(const v1::Timeline& timeline, bool rescaled) {
  const v1::ScopeKind kind = rescaled ? v1::SCOPE_KIND_STEP : v1::SCOPE_KIND_RUN;
  v1::TimeTable table;
  table.set_device(timeline.device());
  table.set_rank(timeline.rank());
  table.set_tool(timeline.tool());
  table.set_capture(CaptureLabel(timeline.artifact_id()));
  table.set_rescaled(rescaled);
  std::map<absl::string_view, const v1::Metric*> shares;
  for (const SharePart& part : kShareParts) {
    if (!part.disjoint) continue;
    const v1::Metric* share = OfTimeline(timeline, part.share_id, kind);
    if (share == nullptr) continue;
    shares[part.share_id] = share;
    table.add_share_keys(share->key());
  }
  if (shares.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::Metric* sum, SumOf(shares));
  if (sum != nullptr) table.set_sum_key(sum->key());
  auto add_context = [&](const TimeFigure& figure) {
    const v1::Metric* metric = OfTimeline(timeline, figure.id, figure.kind);
    if (metric != nullptr) table.add_context_keys(metric->key());
  };
  if (rescaled) {
    for (const TimeFigure& figure : kRescaledFigures) add_context(figure);
  } else {
    for (const TimeFigure& figure : kWindowFigures) add_context(figure);
  }
  *section_.add_time_tables() = std::move(table);
  return absl::OkStatus();
}

void MetricsWriter::AddKernels() {
  // One row a function and GPU, longest first; counters of a kernel join the
  // row of its launches on the timeline.
  struct Row {
    const v1::KernelSummary* summary;
    double time;
  };
  std::vector<Row> rows;
  std::multimap<std::string, size_t> index;
  for (const v1::KernelSummary& summary : input_.measurement().kernels()) {
    const double time = static_cast<double>(summary.total_time_ns());
    const std::string name = NormalKernelName(summary.name());
    const auto same = index.equal_range(name);
    const auto row = std::find_if(same.first, same.second, [&](const auto& entry) {
      const v1::KernelSummary& other = *rows[entry.second].summary;
      return ReportInput::Fits(other.device(), summary.device()) &&
             ReportInput::Fits(other.rank(), summary.rank());
    });
    if (row == same.second) {
      index.emplace(name, rows.size());
      rows.push_back({&summary, time});
    } else {
      rows[row->second].time = std::max(rows[row->second].time, time);
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.time > b.time; });
  if (rows.size() > kMostKernels) rows.resize(kMostKernels);
  for (const Row& row : rows) {
    v1::KernelRow* out = section_.add_kernels();
    out->set_kernel(row.summary->name());
    out->set_device(row.summary->device());
    out->set_rank(row.summary->rank());
    for (const char* id : kKernelColumns) {
      const v1::Metric* metric =
          input_.FindOfKernel(id, row.summary->name(), row.summary->device(), row.summary->rank());
      if (metric != nullptr) out->add_metric_keys(metric->key());
    }
    const v1::Metric* stall = input_.TopStall(row.summary->name());
    if (stall != nullptr) out->add_metric_keys(stall->key());
  }
}

}  // namespace

absl::StatusOr<v1::MetricsSection> MakeMetricsSection(ReportInput& input) {
  return MetricsWriter(input).Write();
}

}  // namespace solward::workflow
