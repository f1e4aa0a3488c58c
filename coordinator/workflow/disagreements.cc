// Two captures of the same thing: the numbers should agree. Where they do not,
// a finding says so. What depends on the host's speed differs between profilers
// by nature, and is told apart.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "coordinator/workflow/kernel_names.h"
#include "coordinator/workflow/measure_draft.h"
#include "coordinator/workflow/metric_view.h"

namespace solward::workflow {
namespace {

// Name of the client among the tools.
constexpr absl::string_view kClient = "client";

// Totals grow with the number of recorded steps or launches.
bool GrowsWithTheRun(const Metric& metric) {
  static constexpr absl::string_view kTotals[] = {"kernel_total_time", "kernel_launches",
                                                  "kernel_time_share"};
  for (absl::string_view id : kTotals) {
    if (metric.id() == id) return true;
  }
  return metric.scope().kind() == v1::SCOPE_KIND_RUN;
}

// Host time, which every profiler stretches by its own cost.
bool DependsOnHost(const Metric& metric) {
  return metric.id() == "profiled_step_time" || metric.id() == "host_stretch_time" ||
         metric.id() == "synchronization_time" || absl::StartsWith(metric.id(), "idle_");
}

double RelativeDifference(double a, double b) {
  const double larger = std::max(std::abs(a), std::abs(b));
  return larger == 0 ? 0 : std::abs(a - b) / larger;
}

struct Reading {
  const Metric* metric;
  std::string tool;
  std::string artifact;
  size_t rank;  // of the tool
};

struct Disagreement {
  Reading preferred, other;
  double difference = 0;
  double weight = 0;  // time of the kernel it is about; 0: of no kernel
};

// Captures print percentages with two decimals at least: closer than this is
// rounding, whatever the relative difference.
constexpr double kRoundingPercent = 0.1;

// Counts a step: less than one is a call at the border of the region.
bool IsRounding(const Metric& a, const Metric& b) {
  const double difference = std::abs(a.value() - b.value());
  const bool count = a.unit() == "{call}" || a.unit() == "{kernel}";
  return (a.unit() == "%" && difference < kRoundingPercent) || (count && difference < 1);
}

// Metrics that speak of one thing: id, kind of scope, device, kernel.
using Subject = std::tuple<std::string, int, int, std::string>;

std::map<Subject, std::vector<Reading>> ReadingsBySubject(const MeasureDraft& draft) {
  std::map<Subject, std::vector<Reading>> subjects;
  for (const Metric& metric : draft.metrics.metrics()) {
    Reading reading{&metric, "", "", 0};
    if (metric.provenance().has_measured()) {
      reading.tool = metric.provenance().measured().tool();
      reading.artifact = metric.provenance().measured().artifact_id();
      reading.rank = ToolRank(draft.catalogue(), reading.tool);
    } else if (metric.provenance().has_given() && metric.id() == "step_time") {
      reading.tool = std::string(kClient);
      reading.rank = draft.catalogue().tool_precedence().size() + 1;
    } else {
      continue;
    }
    if (GrowsWithTheRun(metric) || DependsOnHost(metric)) continue;
    const v1::Scope& scope = metric.scope();
    subjects[{metric.id(), scope.kind(), scope.device(), NormalScopeName(scope.name())}].push_back(
        std::move(reading));
  }
  return subjects;
}

// The farthest reading of another capture from the preferred one.
Disagreement WorstOf(const std::vector<Reading>& readings) {
  const Reading* preferred = &readings.front();
  for (const Reading& reading : readings) {
    if (reading.rank < preferred->rank) preferred = &reading;
  }
  Disagreement worst;
  for (const Reading& other : readings) {
    const v1::Scope& a = preferred->metric->scope();
    const v1::Scope& b = other.metric->scope();
    if (other.artifact == preferred->artifact) continue;
    if (!SameLane(a.device(), a.rank(), b.device(), b.rank())) continue;
    const double difference = RelativeDifference(preferred->metric->value(), other.metric->value());
    if (IsRounding(*preferred->metric, *other.metric)) continue;
    if (difference > worst.difference) {
      worst = {*preferred, other, difference};
    }
  }
  return worst;
}

// The tool; the capture's label when both readings are of one tool.
std::string SourceName(const Reading& reading, const Reading& other, const MeasureDraft& draft) {
  if (reading.tool != other.tool) return reading.tool;
  for (const v1::CaptureOutcome& capture : draft.out.captures()) {
    if (capture.artifact_id() == reading.artifact && !capture.label().empty()) {
      return capture.label();
    }
  }
  return reading.tool;
}

// Longest time of each kernel, by normal name.
std::map<std::string, double> KernelTimes(const v1::Measurement& measurement) {
  std::map<std::string, double> times;
  for (const v1::KernelSummary& summary : measurement.kernels()) {
    double& time = times[NormalKernelName(summary.name())];
    time = std::max(time, static_cast<double>(summary.total_time_ns()));
  }
  return times;
}

void AddDisagreement(const std::string& id, const Disagreement& found, MeasureDraft& draft) {
  v1::Finding& finding =
      draft.AddFinding("tools_disagree", v1::SEVERITY_WARNING,
                       {{"first", found.preferred.metric}, {"second", found.other.metric}},
                       {{"metric", id},
                        {"first_tool", SourceName(found.preferred, found.other, draft)},
                        {"second_tool", SourceName(found.other, found.preferred, draft)}});
  if (found.preferred.metric->scope().kind() == v1::SCOPE_KIND_KERNEL) {
    finding.mutable_location()->set_kernel(found.preferred.metric->scope().name());
  }
}

// One finding a metric id: the longest kernel that disagrees, of others the
// farthest apart.
void FindToolsDisagree(MeasureDraft& draft) {
  const std::map<std::string, double> times = KernelTimes(draft.out);
  std::map<std::string, Disagreement> by_id;
  for (const auto& [subject, readings] : ReadingsBySubject(draft)) {
    if (readings.size() < 2) continue;
    Disagreement worst = WorstOf(readings);
    const auto& [id, kind, device, name] = subject;
    if (worst.difference <= draft.catalogue().Find(id)->tolerance) continue;
    if (const auto time = times.find(name); time != times.end()) worst.weight = time->second;
    const auto [entry, is_new] = by_id.try_emplace(id, worst);
    Disagreement& kept = entry->second;
    if (!is_new &&
        std::pair(worst.weight, worst.difference) > std::pair(kept.weight, kept.difference)) {
      kept = worst;
    }
  }
  for (const auto& [id, found] : by_id) AddDisagreement(id, found, draft);
}

// The same GPU work a step, another host time a step. Whether it was said.
bool CompareHosts(const v1::Timeline& first, const v1::Timeline& second, MeasureDraft& draft) {
  const LaneView a(draft.metrics, first), b(draft.metrics, second);
  const Metric* step_a = a.Find("profiled_step_time", v1::SCOPE_KIND_STEP);
  const Metric* step_b = b.Find("profiled_step_time", v1::SCOPE_KIND_STEP);
  const Metric* busy_a = a.Find("gpu_busy_time", v1::SCOPE_KIND_STEP);
  const Metric* busy_b = b.Find("gpu_busy_time", v1::SCOPE_KIND_STEP);
  const Metric* idle_a = a.Find("idle_share", v1::SCOPE_KIND_RUN);
  const Metric* idle_b = b.Find("idle_share", v1::SCOPE_KIND_RUN);
  for (const Metric* metric : {step_a, step_b, busy_a, busy_b, idle_a, idle_b}) {
    if (metric == nullptr) return false;
  }
  const double tolerance = draft.catalogue().Find("profiled_step_time")->tolerance;
  if (RelativeDifference(step_a->value(), step_b->value()) <= tolerance) return false;
  draft.AddFinding("profilers_slow_host_differently", v1::SEVERITY_INFO,
                   {{"first_step", step_a},
                    {"second_step", step_b},
                    {"first_busy", busy_a},
                    {"second_busy", busy_b},
                    {"first_idle", idle_a},
                    {"second_idle", idle_b}},
                   {{"first_tool", first.tool()}, {"second_tool", second.tool()}});
  return true;
}

void FindHostsDiffer(MeasureDraft& draft) {
  const auto& timelines = draft.out.timelines();
  std::set<std::pair<std::string, std::string>> said;  // the ranks of a job are slowed alike
  for (int i = 0; i < timelines.size(); ++i) {
    for (int j = i + 1; j < timelines.size(); ++j) {
      const v1::Timeline& a = timelines[i];
      const v1::Timeline& b = timelines[j];
      if (a.tool() == b.tool() || a.artifact_id() == b.artifact_id()) continue;
      if (!SameLane(a.device(), a.rank(), b.device(), b.rank())) continue;
      const bool a_first =
          ToolRank(draft.catalogue(), a.tool()) <= ToolRank(draft.catalogue(), b.tool());
      const v1::Timeline& first = a_first ? a : b;
      const v1::Timeline& second = a_first ? b : a;
      if (said.count({first.tool(), second.tool()}) > 0) continue;
      if (CompareHosts(first, second, draft)) said.insert({first.tool(), second.tool()});
    }
  }
}

}  // namespace

void FindDisagreements(MeasureDraft& draft) {
  FindToolsDisagree(draft);
  FindHostsDiffer(draft);
}

}  // namespace solward::workflow
