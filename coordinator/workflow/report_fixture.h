// For tests of stage Report: a measurement put together figure by figure, and
// the classification that the stage before makes of it.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_REPORT_FIXTURE_H_
#define SOLWARD_COORDINATOR_WORKFLOW_REPORT_FIXTURE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/metric.h"
#include "solward/v1/analysis.pb.h"
#include "solward/v1/report.pb.h"

namespace solward::workflow {

// Parts of one step in µs by their name in the time model ("kernel",
// "idle_launch", ...); parts that are not named are 0.
using StepParts = std::map<std::string, double>;

class ReportCase {
 public:
  ReportCase();

  // Adds a figure read by a tool; returns its key.
  const Metric& Measured(const std::string& id, double value, const v1::Scope& scope,
                         const std::string& tool = "nsys", const std::string& artifact = "art-1");
  const Metric& Given(const std::string& id, double value, const v1::Scope& scope);
  const Metric& Derived(const std::string& formula, const v1::Scope& scope,
                        const std::vector<std::pair<std::string, const Metric*>>& inputs);

  // A timeline of ten equal steps with its times, shares and counts; with an
  // unprofiled step time (µs) also the rescaled shares.
  void AddTimeline(const StepParts& parts, int device = 0, int rank = -1);
  void AddCapture(const std::string& artifact, const std::string& label, const std::string& tool);

  struct Counters {
    double compute = 0, memory = 0, dram = 0, occupancy = 0, tensor = 0, time_us = 100;
  };
  // One kernel of an ncu capture ("art-2").
  void AddCountedKernel(const std::string& name, const Counters& counters);

  v1::Finding& AddFinding(const std::string& id, v1::Severity severity);
  void Want(const Metric& metric) { measurement.add_wanted_keys(metric.key()); }

  // Classify and MakeReport.
  absl::StatusOr<v1::Classification> Classified();
  absl::StatusOr<v1::Report> Report();

  v1::Understanding understanding;
  v1::Measurement measurement;  // but for its metrics
  MetricSet metrics;

 private:
  v1::Measurement Complete() const;
};

// Ids of the recommendations of a report, in order.
std::vector<std::string> RecommendationIds(const v1::Report& report);
const v1::Recommendation* FindRecommendation(const v1::Report& report, const std::string& id);
const v1::Metric* FindMetric(const v1::Report& report, const std::string& key);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_REPORT_FIXTURE_H_
