#include "coordinator/workflow/evidence_fixture.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace solward::workflow::testing {
namespace {

// What a fixture cannot go on without.
void Require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

template <typename T>
T Take(absl::StatusOr<T> value) {
  Require(value.ok(), std::string(value.status().message()));
  return *std::move(value);
}

v1::Measured Provenance(const std::string& tool, const std::string& artifact,
                        const std::string& raw_name) {
  v1::Measured measured;
  measured.set_tool(tool);
  measured.set_artifact_id(artifact);
  measured.set_raw_name(raw_name);
  measured.mutable_rows()->set_table("timeline");
  measured.set_aggregation(v1::AGGREGATION_SINGLE);
  measured.set_samples(1);
  return measured;
}

}  // namespace

Knowledge BuiltInKnowledge() {
  return {BuiltInCatalogue(), BuiltInGpuPeaks(), BuiltInClassificationParameters()};
}

SharesRow ReadShares(const std::string& file, int device) {
  const char* source = std::getenv("SOLWARD_SOURCE_DIR");
  Require(source != nullptr, "SOLWARD_SOURCE_DIR is not set");
  std::ifstream in(absl::StrCat(source, "/tests/data/shares.tsv"));
  std::vector<std::string> header;
  for (std::string line; std::getline(in, line);) {
    if (absl::StartsWith(line, "#")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    if (header.empty()) {
      header = cells;
      continue;
    }
    if (cells[0] != file || std::stoi(cells[1]) != device) continue;
    SharesRow row;
    row.file = file;
    row.device = device;
    row.steps = std::stoi(cells[2]);
    row.window_ms = std::stod(cells[3]);
    if (cells[4] != "-") row.busy_ms_per_step = std::stod(cells[4]);
    for (size_t i = 5; i + 1 < cells.size(); ++i) row.percent[header[i]] = std::stod(cells[i]);
    return row;
  }
  Require(false, absl::StrCat("shares.tsv has no row ", file, " of device ", device));
  return {};
}

ResultFixture::ResultFixture() = default;

const Metric* ResultFixture::Add(const std::string& id, double value, v1::Scope scope,
                                 const std::string& tool, const std::string& artifact,
                                 const std::string& raw_name) {
  return &metrics_.Add(Take(Metric::Measure(BuiltInCatalogue(), id, value, std::move(scope),
                                            Provenance(tool, artifact, raw_name))));
}

std::string ResultFixture::AddMeasured(const std::string& id, double value, v1::Scope scope,
                                       const std::string& tool, const std::string& artifact,
                                       const std::string& raw_name) {
  return Add(id, value, std::move(scope), tool, artifact, raw_name)->key();
}

void ResultFixture::AddCapture(const std::string& artifact, const std::string& tool) {
  for (const v1::CaptureOutcome& capture : result_.captures()) {
    if (capture.artifact_id() == artifact) return;
  }
  v1::CaptureOutcome& capture = *result_.add_captures();
  capture.set_artifact_id(artifact);
  capture.set_label(artifact);
  capture.set_tool(tool);
}

std::string ResultFixture::AddTimeline(const std::string& tool, const SharesRow& row,
                                       const HostCounts& counts, int rank) {
  const std::string artifact = row.file;
  AddCapture(artifact, tool);
  v1::Timeline& timeline = *result_.add_timelines();
  timeline.set_device(row.device);
  timeline.set_rank(rank);
  timeline.set_process_id(static_cast<uint32_t>(100 + row.device));
  timeline.set_artifact_id(artifact);
  timeline.set_tool(tool);
  const auto add = [&](const std::string& id, double value, v1::Scope scope) {
    timeline.add_metric_keys(AddMeasured(id, value, std::move(scope), tool, artifact, id));
  };

  // Rounded to a tenth of a percent in the file: kernels take what is left.
  std::map<std::string, double> parts = {
      {"exposed_communication_time", row.percent.at("exposed_comm")},
      {"exposed_transfer_time", row.percent.at("exposed_transfer")},
      {"idle_launch_time", row.percent.at("idle_launch")},
      {"idle_sync_time", row.percent.at("idle_sync")},
      {"idle_host_time", row.percent.at("idle_host")},
      {"idle_queued_time", row.percent.at("idle_queued")}};
  double rest = 100, idle = 0;
  for (const auto& [id, percent] : parts) {
    rest -= percent;
    if (absl::StartsWith(id, "idle_")) idle += percent;
  }
  parts["kernel_time"] = rest;
  parts["communication_time"] = row.percent.at("all_comm");
  parts["idle_time"] = idle;
  parts["gpu_busy_time"] = 100 - idle;

  const auto add_scope = [&](v1::Scope scope, double whole_ns) {
    for (const auto& [id, percent] : parts) add(id, whole_ns * percent / 100, scope);
  };
  const double window = row.window_ms * kMs;
  add("window_time", window, RunScope(row.device, rank));
  add_scope(RunScope(row.device, rank), window);
  v1::Scope scope = RunScope(row.device, rank);
  if (row.steps > 0) {
    scope = StepScope(row.device, rank);
    add("step_count", row.steps, RunScope(row.device, rank));
    add("profiled_step_time", window / row.steps, scope);
    add_scope(scope, window / row.steps);
  }
  add("kernel_count", counts.kernels, scope);
  add("launch_call_count", counts.launch_calls, scope);
  add("synchronization_count", counts.synchronizations, scope);
  add("synchronization_time", counts.synchronization_ms * kMs, scope);
  add("host_stretch_time", counts.long_stretches_ms * kMs, scope);
  return artifact;
}

void ResultFixture::AddTimelineKernels(const std::string& artifact, const std::string& tool,
                                       int device, int rank,
                                       const std::vector<TimelineKernel>& kernels) {
  double all_ms = 0;
  for (const TimelineKernel& kernel : kernels) {
    if (kernel.category == v1::KERNEL_CATEGORY_COMPUTE) all_ms += kernel.total_ms;
  }
  const Metric* all =
      Add("kernel_total_time", all_ms * kMs, RunScope(device, rank), tool, artifact, "duration");
  for (const TimelineKernel& kernel : kernels) {
    v1::KernelSummary& summary = *result_.add_kernels();
    summary.set_name(kernel.name);
    summary.set_device(device);
    summary.set_rank(rank);
    summary.set_artifact_id(artifact);
    summary.set_category(kernel.category);
    summary.set_launches(static_cast<uint64_t>(kernel.launches));
    summary.set_total_time_ns(static_cast<int64_t>(kernel.total_ms * kMs));
    const v1::Scope scope = KernelScope(kernel.name, device, rank);
    const Metric* total =
        Add("kernel_total_time", kernel.total_ms * kMs, scope, tool, artifact, "duration");
    const Metric* mean = Add("kernel_time", kernel.total_ms * kMs / kernel.launches, scope, tool,
                             artifact, "duration");
    summary.add_metric_keys(total->key());
    summary.add_metric_keys(mean->key());
    if (kernel.category != v1::KERNEL_CATEGORY_COMPUTE) continue;
    const Metric& share = metrics_.Add(Take(Metric::Derive(
        BuiltInCatalogue(), "kernel_time_share", scope, {{"time", total}, {"all", all}})));
    summary.add_metric_keys(share.key());
  }
}

void ResultFixture::AddCounters(const std::string& artifact, const std::vector<Counters>& kernels) {
  AddCapture(artifact, "ncu");
  for (const Counters& counters : kernels) {
    v1::KernelSummary& summary = *result_.add_kernels();
    summary.set_name(counters.kernel);
    summary.set_device(0);
    summary.set_rank(-1);
    summary.set_artifact_id(artifact);
    summary.set_category(v1::KERNEL_CATEGORY_COMPUTE);
    summary.set_launches(static_cast<uint64_t>(counters.launches));
    summary.set_total_time_ns(static_cast<int64_t>(counters.time_us * counters.launches * kUs));
    const auto add = [&](const std::string& id, double value, const std::string& part = "") {
      const std::string name =
          part.empty() ? counters.kernel : absl::StrCat(counters.kernel, "|", part);
      summary.add_metric_keys(AddMeasured(id, value, KernelScope(name, 0), "ncu", artifact, id));
    };
    add("kernel_time", counters.time_us * kUs);
    add("kernel_launches", counters.launches);
    add("kernel_total_time", counters.time_us * counters.launches * kUs);
    add("compute_throughput", counters.compute);
    add("memory_throughput", counters.memory);
    add("dram_throughput", counters.dram);
    if (counters.clock_ghz > 0) add("sm_clock", counters.clock_ghz * 1e9);
    if (counters.bandwidth > 0) add("dram_bandwidth", counters.bandwidth);
    for (const auto& [reason, percent] : counters.stalls) add("warp_stall", percent, reason);
  }
}

void ResultFixture::AddH200(const std::string& artifact, int device) {
  v1::Gpu& gpu = *result_.mutable_environment()->add_gpus();
  gpu.set_device(device);
  gpu.set_name("NVIDIA H200");
  gpu.set_compute_major(9);
  gpu.set_compute_minor(0);
  gpu.set_sm_count(132);
  gpu.set_memory_bytes(143'771ull << 20);
  gpu.set_artifact_id(artifact);
}

v1::DelegationResult ResultFixture::Finish() {
  v1::DelegationResult result = result_;
  for (const Metric& metric : metrics_.metrics()) *result.add_metrics() = metric.proto();
  return result;
}

UnderstandingFixture& UnderstandingFixture::Want(const std::string& id, v1::ScopeKind scope) {
  v1::DesiredMetric& metric = *understanding_.mutable_request()->add_desired_metrics();
  metric.set_id(id);
  metric.set_scope(scope);
  return *this;
}

UnderstandingFixture& UnderstandingFixture::Give(const std::string& id, double value,
                                                 v1::ScopeKind kind) {
  v1::Given given;
  given.set_field("context." + id);
  v1::Scope scope = RunScope();
  scope.set_kind(kind);
  v1::Metric metric = Take(Metric::Give(BuiltInCatalogue(), id, value, scope, given)).proto();
  metric.set_key(absl::StrCat("c", understanding_.context_metrics_size()));
  *understanding_.add_context_metrics() = metric;
  return *this;
}

UnderstandingFixture& UnderstandingFixture::Dtype(v1::Dtype dtype) {
  understanding_.mutable_request()->mutable_context()->set_dtype(dtype);
  return *this;
}

UnderstandingFixture& UnderstandingFixture::KernelPattern(const std::string& pattern) {
  understanding_.mutable_request()->mutable_constraints()->set_kernel_pattern(pattern);
  return *this;
}

UnderstandingFixture& UnderstandingFixture::Gpu(const std::string& name) {
  understanding_.mutable_request()->mutable_context()->set_gpu_name(name);
  return *this;
}

v1::Evidence EvidenceOf(std::vector<v1::DelegationResult> results) {
  v1::Evidence evidence;
  for (v1::DelegationResult& result : results) {
    v1::DelegationOutcome& outcome = *evidence.add_outcomes();
    outcome.mutable_planned()->set_specialist("perf-profiling-specialist");
    outcome.set_delegation_id("d1");
    *outcome.mutable_result() = std::move(result);
  }
  return evidence;
}

const v1::Metric& OneMetric(const google::protobuf::RepeatedPtrField<v1::Metric>& metrics,
                            const std::string& id, v1::ScopeKind kind, const std::string& name) {
  const v1::Metric* found = nullptr;
  for (const v1::Metric& metric : metrics) {
    if (metric.id() != id || metric.scope().kind() != kind) continue;
    if (!name.empty() && metric.scope().name() != name) continue;
    if (found != nullptr) ADD_FAILURE() << "more than one " << id;
    found = &metric;
  }
  Require(found != nullptr, absl::StrCat("no metric ", id, " ", name));
  return *found;
}

bool HasMetric(const google::protobuf::RepeatedPtrField<v1::Metric>& metrics, const std::string& id,
               v1::ScopeKind kind) {
  for (const v1::Metric& metric : metrics) {
    if (metric.id() == id && metric.scope().kind() == kind) return true;
  }
  return false;
}

const v1::Finding* FindFinding(const v1::Measurement& measurement, const std::string& id) {
  for (const v1::Finding& finding : measurement.findings()) {
    if (finding.id() == id) return &finding;
  }
  return nullptr;
}

const v1::UnmeasuredMetric* FindUnmeasured(const v1::Measurement& measurement,
                                           const std::string& id) {
  for (const v1::UnmeasuredMetric& unmeasured : measurement.unmeasured()) {
    if (unmeasured.id() == id) return &unmeasured;
  }
  return nullptr;
}

double ValueOf(const std::string& key, const v1::Measurement& measurement,
               const v1::Classification& classification) {
  for (const auto* metrics : {&measurement.metrics(), &classification.metrics()}) {
    for (const v1::Metric& metric : *metrics) {
      if (metric.key() == key) return metric.value();
    }
  }
  ADD_FAILURE() << "no metric has key \"" << key << "\"";
  return 0;
}

std::vector<std::string> ReasonsOf(const v1::Classification& classification) {
  std::vector<std::string> ids;
  for (const v1::Statement& reason : classification.confidence_reasons()) {
    ids.push_back(reason.message_id());
  }
  return ids;
}

}  // namespace solward::workflow::testing
