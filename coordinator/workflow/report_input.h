// What the parts of stage Report look up, and how they say a sentence.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_REPORT_INPUT_H_
#define SOLWARD_COORDINATOR_WORKFLOW_REPORT_INPUT_H_

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"
#include "solward/v1/report.pb.h"

namespace solward::workflow {

// A statement piece by piece: Sentence("summary.mfu").Metric("mfu", key).Done().
class Sentence {
 public:
  explicit Sentence(absl::string_view message_id);
  Sentence& Metric(const std::string& name, absl::string_view key);
  Sentence& Name(const std::string& name, absl::string_view text);
  Sentence& Term(const std::string& name, absl::string_view term);
  Sentence& Quote(const std::string& name, absl::string_view text);
  v1::Statement Done() { return std::move(statement_); }

 private:
  v1::Statement statement_;
};

// The stages before, with their metrics by key. Metrics that the report itself
// derives (sums, bounds) are added under keys of their own. Not thread-safe.
class ReportInput {
 public:
  ReportInput(const v1::Understanding& understanding, const v1::Measurement& measurement,
              const v1::Classification& classification, const Knowledge& knowledge);
  ReportInput(const ReportInput&) = delete;
  ReportInput& operator=(const ReportInput&) = delete;

  const v1::Understanding& understanding() const { return understanding_; }
  const v1::Measurement& measurement() const { return measurement_; }
  const v1::Classification& classification() const { return classification_; }
  const Knowledge& knowledge() const { return knowledge_; }

  // nullptr when no metric has this key (or the key is empty).
  const v1::Metric* Find(absl::string_view key) const;
  // First metric of an id whose scope fits; nullptr when there is none.
  // Device and rank fit when equal or one of them is -1.
  const v1::Metric* Find(absl::string_view id, v1::ScopeKind kind, int device, int rank) const;
  static bool Fits(int a, int b) { return a == b || a < 0 || b < 0; }
  // First metric of an id anywhere.
  const v1::Metric* FindAny(absl::string_view id) const;
  // Of one kernel, under whatever name a tool prints it; on this device and
  // rank before any that fits.
  const v1::Metric* FindOfKernel(absl::string_view id, absl::string_view kernel, int device = -1,
                                 int rank = -1) const;
  // Its largest stall reason; nullptr when stalls were not measured.
  const v1::Metric* TopStall(absl::string_view kernel) const;
  // Input of a derived metric by its name in the formula; nullptr otherwise.
  const v1::Metric* InputOf(const v1::Metric& metric, absl::string_view name) const;

  // Computes a formula of the catalogue over metrics known here.
  absl::StatusOr<const v1::Metric*> Derive(
      absl::string_view formula_id, const v1::Scope& scope,
      const std::vector<std::pair<std::string, const v1::Metric*>>& inputs);

  const std::vector<const v1::Metric*>& metrics() const { return metrics_; }

  // "GPU 0", "GPU 0 rank 1": a name of a place, shown as code.
  static std::string PlaceName(int device, int rank);
  // Term of what a share is a share of ("base.window", "base.step", "base.kernels").
  static std::string BaseTerm(const v1::Metric& share);

 private:
  void Add(const v1::Metric& metric);

  const v1::Understanding& understanding_;
  const v1::Measurement& measurement_;
  const v1::Classification& classification_;
  const Knowledge& knowledge_;
  std::vector<const v1::Metric*> metrics_;
  std::map<std::string, const v1::Metric*, std::less<>> by_key_;
  // NormalKernelName -> metrics of that kernel.
  std::map<std::string, std::vector<const v1::Metric*>, std::less<>> by_kernel_;
  std::deque<v1::Metric> made_here_;
};

// The parts (report_summary.cc, report_metrics.cc, report_findings.cc,
// recommendations.cc). Keys are those of the input; MakeReport renames them.
v1::SummarySection MakeSummary(const ReportInput& input);
absl::StatusOr<v1::MetricsSection> MakeMetricsSection(ReportInput& input);
v1::FindingsSection MakeFindings(const ReportInput& input);

// Gives every metric the report refers to the key m1, m2, ... in order of
// first use, fills all_metrics with them and the inputs they are derived from
// (report_keys.cc). INTERNAL when a key names no metric.
absl::Status RenameKeys(const ReportInput& input, v1::Report& report);

// "launch_overhead".
std::string ClassWord(v1::BottleneckClass bottleneck_class);
bool IsUndetermined(v1::BottleneckClass bottleneck_class);
// COMPUTE_BOUND, MEMORY_BOUND or LATENCY_BOUND.
bool IsKernelClass(v1::BottleneckClass bottleneck_class);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_REPORT_INPUT_H_
