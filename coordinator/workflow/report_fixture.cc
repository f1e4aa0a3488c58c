#include "coordinator/workflow/report_fixture.h"

#include <cstdlib>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "coordinator/workflow/classify.h"
#include "coordinator/workflow/report.h"

namespace solward::workflow {
namespace {

constexpr int kSteps = 10;

const Knowledge& TestKnowledge() {
  static const Knowledge* const knowledge =
      new Knowledge{BuiltInCatalogue(), BuiltInGpuPeaks(), BuiltInClassificationParameters()};
  return *knowledge;
}

// A fixture that cannot be built is a mistake of the test.
template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::cerr << "report fixture: " << value.status() << "\n";
    std::abort();
  }
  return *std::move(value);
}

v1::Measured Provenance(const std::string& tool, const std::string& artifact,
                        const std::string& raw) {
  v1::Measured measured;
  measured.set_tool(tool);
  measured.set_tool_version("2025.3.1");
  measured.set_artifact_id(artifact);
  measured.set_raw_name(raw);
  measured.mutable_rows()->set_table(tool == "ncu" ? "raw" : "timeline");
  measured.set_aggregation(v1::AGGREGATION_SINGLE);
  measured.set_samples(1);
  return measured;
}

}  // namespace

ReportCase::ReportCase() = default;

const Metric& ReportCase::Measured(const std::string& id, double value, const v1::Scope& scope,
                                   const std::string& tool, const std::string& artifact) {
  return metrics.Add(
      Must(Metric::Measure(BuiltInCatalogue(), id, value, scope, Provenance(tool, artifact, id))));
}

const Metric& ReportCase::Given(const std::string& id, double value, const v1::Scope& scope) {
  v1::Given given;
  given.set_field(absl::StrCat("context.", id));
  return metrics.Add(Must(Metric::Give(BuiltInCatalogue(), id, value, scope, given)));
}

const Metric& ReportCase::Derived(
    const std::string& formula, const v1::Scope& scope,
    const std::vector<std::pair<std::string, const Metric*>>& inputs) {
  return metrics.Add(Must(Metric::Derive(BuiltInCatalogue(), formula, scope, inputs)));
}

void ReportCase::AddCapture(const std::string& artifact, const std::string& label,
                            const std::string& tool) {
  v1::CaptureOutcome* capture = measurement.add_captures();
  capture->set_artifact_id(artifact);
  capture->set_label(label);
  capture->set_tool(tool);
}

void ReportCase::AddTimeline(const StepParts& parts, int device, int rank) {
  static constexpr const char* kParts[] = {"kernel",           "exposed_communication",
                                           "exposed_transfer", "idle_queued",
                                           "idle_host",        "idle_sync",
                                           "idle_launch"};
  v1::Timeline* timeline = measurement.add_timelines();
  timeline->set_device(device);
  timeline->set_rank(rank);
  timeline->set_process_id(static_cast<uint32_t>(100 + rank));
  timeline->set_tool("nsys");
  timeline->set_artifact_id("art-1");
  timeline->set_step_marker("nvtx:step");
  const v1::Scope run = RunScope(device, rank), step = StepScope(device, rank);
  auto keep = [&](const Metric& metric) -> const Metric& {
    timeline->add_metric_keys(metric.key());
    return metric;
  };
  double step_ns = 0, busy_ns = 0;
  std::map<std::string, double> ns;
  for (const char* part : kParts) {
    auto it = parts.find(part);
    ns[part] = it == parts.end() ? 0 : it->second * 1e3;
    step_ns += ns[part];
    if (std::string(part).rfind("idle", 0) != 0) busy_ns += ns[part];
  }
  const Metric& window = keep(Measured("window_time", step_ns * kSteps, run));
  keep(Measured("step_count", kSteps, run));
  keep(Measured("profiled_step_time", step_ns, step));
  keep(Measured("gpu_busy_time", busy_ns, step));
  const Metric& busy = keep(Measured("gpu_busy_time", busy_ns * kSteps, run));
  keep(Derived("gpu_busy_share", run, {{"part", &busy}, {"window", &window}}));
  for (const char* part : kParts) {
    const std::string id = absl::StrCat(part, "_time");
    keep(Measured(id, ns[part], step));
    const Metric& whole = keep(Measured(id, ns[part] * kSteps, run));
    keep(Derived(absl::StrCat(part, "_share"), run, {{"part", &whole}, {"window", &window}}));
  }
}

void ReportCase::AddCountedKernel(const std::string& name, const Counters& counters) {
  v1::KernelSummary* kernel = measurement.add_kernels();
  kernel->set_name(name);
  kernel->set_device(0);
  kernel->set_rank(-1);
  kernel->set_launches(1);
  kernel->set_total_time_ns(static_cast<int64_t>(counters.time_us * 1e3));
  kernel->set_category(v1::KERNEL_CATEGORY_COMPUTE);
  kernel->set_artifact_id("art-2");
  const v1::Scope scope = KernelScope(name, 0);
  auto keep = [&](const std::string& id, double value) {
    kernel->add_metric_keys(Measured(id, value, scope, "ncu", "art-2").key());
  };
  keep("kernel_time", counters.time_us * 1e3);
  keep("kernel_launches", 1);
  keep("compute_throughput", counters.compute);
  keep("memory_throughput", counters.memory);
  if (counters.dram > 0) keep("dram_throughput", counters.dram);
  if (counters.occupancy > 0) keep("achieved_occupancy", counters.occupancy);
  if (counters.tensor > 0) keep("tensor_pipe_utilization", counters.tensor);
}

v1::Finding& ReportCase::AddFinding(const std::string& id, v1::Severity severity) {
  v1::Finding* finding = measurement.add_findings();
  finding->set_id(id);
  finding->set_severity(severity);
  return *finding;
}

v1::Measurement ReportCase::Complete() const {
  v1::Measurement complete = measurement;
  for (const Metric& metric : metrics.metrics()) *complete.add_metrics() = metric.proto();
  return complete;
}

absl::StatusOr<v1::Classification> ReportCase::Classified() {
  return Classify(Complete(), TestKnowledge());
}

absl::StatusOr<v1::Report> ReportCase::Report() {
  const v1::Measurement complete = Complete();
  auto classification = Classify(complete, TestKnowledge());
  if (!classification.ok()) return classification.status();
  return MakeReport("an-TEST", understanding, complete, *classification, TestKnowledge());
}

std::vector<std::string> RecommendationIds(const v1::Report& report) {
  std::vector<std::string> ids;
  for (const auto& recommendation : report.recommendations().recommendations()) {
    ids.push_back(recommendation.id());
  }
  return ids;
}

const v1::Recommendation* FindRecommendation(const v1::Report& report, const std::string& id) {
  for (const auto& recommendation : report.recommendations().recommendations()) {
    if (recommendation.id() == id) return &recommendation;
  }
  return nullptr;
}

const v1::Metric* FindMetric(const v1::Report& report, const std::string& key) {
  for (const v1::Metric& metric : report.all_metrics()) {
    if (metric.key() == key) return &metric;
  }
  return nullptr;
}

}  // namespace solward::workflow
