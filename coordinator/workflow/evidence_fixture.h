// Small builders of delegation results for the tests of Measure and Classify.
// Numbers of timelines come from tests/data/shares.tsv (an independent script
// on the captures), counts and counters from the captures themselves, by hand.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_EVIDENCE_FIXTURE_H_
#define SOLWARD_COORDINATOR_WORKFLOW_EVIDENCE_FIXTURE_H_

#include <map>
#include <string>
#include <vector>

#include "common/metric.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"
#include "solward/v1/report.pb.h"

namespace solward::workflow::testing {

inline constexpr double kMs = 1e6;  // ns
inline constexpr double kUs = 1e3;

// The catalogue, peaks and parameters compiled into the program.
Knowledge BuiltInKnowledge();

// One line of tests/data/shares.tsv; fails the test when it is not there.
struct SharesRow {
  std::string file;
  int device = 0;
  int steps = 0;
  double window_ms = 0;
  double busy_ms_per_step = 0;
  std::map<std::string, double> percent;  // by column: "kernel", "idle_launch", ...
};
SharesRow ReadShares(const std::string& file, int device = 0);

// What shares.tsv does not have, per step (per run without steps).
struct HostCounts {
  double kernels = 0;
  double launch_calls = 0;
  double synchronizations = 0;
  double synchronization_ms = 0;
  double long_stretches_ms = 0;  // host stretches of 1 ms and more
};

// One kernel of a counter capture: means over its launches.
struct Counters {
  std::string kernel;
  double time_us = 0;
  double launches = 1;
  double compute = 0;  // percent of peak
  double memory = 0;
  double dram = 0;
  std::map<std::string, double> stalls;  // percent, by reason
  double clock_ghz = 0;                  // 0: not collected
  double bandwidth = 0;                  // byte/s; 0: not collected
};

// One kernel of a timeline.
struct TimelineKernel {
  std::string name;
  double total_ms = 0;
  double launches = 1;
  v1::KernelCategory category = v1::KERNEL_CATEGORY_COMPUTE;
};

// A delegation result piece by piece.
class ResultFixture {
 public:
  ResultFixture();

  // A timeline of this tool with the shares of a row. Returns its artifact id.
  std::string AddTimeline(const std::string& tool, const SharesRow& row, const HostCounts& counts,
                          int rank = -1);
  void AddTimelineKernels(const std::string& artifact, const std::string& tool, int device,
                          int rank, const std::vector<TimelineKernel>& kernels);
  void AddCounters(const std::string& artifact, const std::vector<Counters>& kernels);
  // An H200 as its captures report it.
  void AddH200(const std::string& artifact, int device = 0);

  // A metric read by a tool. Returns its key.
  std::string AddMeasured(const std::string& id, double value, v1::Scope scope,
                          const std::string& tool, const std::string& artifact,
                          const std::string& raw_name);

  v1::DelegationResult& result() { return result_; }
  // The result with its metrics.
  v1::DelegationResult Finish();

 private:
  const Metric* Add(const std::string& id, double value, v1::Scope scope, const std::string& tool,
                    const std::string& artifact, const std::string& raw_name);
  void AddCapture(const std::string& artifact, const std::string& tool);

  MetricSet metrics_;
  v1::DelegationResult result_;
};

// What Understand hands over: wanted metrics and context figures.
class UnderstandingFixture {
 public:
  UnderstandingFixture& Want(const std::string& id,
                             v1::ScopeKind scope = v1::SCOPE_KIND_UNSPECIFIED);
  // A figure that the client gave ("step_time" in ns).
  UnderstandingFixture& Give(const std::string& id, double value, v1::ScopeKind scope);
  UnderstandingFixture& Dtype(v1::Dtype dtype);
  UnderstandingFixture& KernelPattern(const std::string& pattern);
  UnderstandingFixture& Gpu(const std::string& name);

  const v1::Understanding& Done() const { return understanding_; }

 private:
  v1::Understanding understanding_;
};

v1::Evidence EvidenceOf(std::vector<v1::DelegationResult> results);

// --- looking into what came out ------------------------------------------

// The only metric of this id and kind of scope (and name, when given); fails
// the test when there is none or more than one.
const v1::Metric& OneMetric(const google::protobuf::RepeatedPtrField<v1::Metric>& metrics,
                            const std::string& id, v1::ScopeKind kind,
                            const std::string& name = "");
bool HasMetric(const google::protobuf::RepeatedPtrField<v1::Metric>& metrics, const std::string& id,
               v1::ScopeKind kind);
const v1::Finding* FindFinding(const v1::Measurement& measurement, const std::string& id);
const v1::UnmeasuredMetric* FindUnmeasured(const v1::Measurement& measurement,
                                           const std::string& id);
// Value of a key of a measurement or of its classification.
double ValueOf(const std::string& key, const v1::Measurement& measurement,
               const v1::Classification& classification);
std::vector<std::string> ReasonsOf(const v1::Classification& classification);

}  // namespace solward::workflow::testing

#endif  // SOLWARD_COORDINATOR_WORKFLOW_EVIDENCE_FIXTURE_H_
