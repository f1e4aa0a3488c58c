// The classification while its steps work on it.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_CLASSIFY_DRAFT_H_
#define SOLWARD_COORDINATOR_WORKFLOW_CLASSIFY_DRAFT_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/metric.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"
#include "solward/v1/report.pb.h"

namespace solward::workflow {

class ClassifyDraft {
 public:
  // INTERNAL when the keys of the measurement are not m1, m2, ... in order, as
  // Measure leaves them. Both must outlive the draft.
  static absl::StatusOr<ClassifyDraft> Make(const v1::Measurement& measurement,
                                            const Knowledge& knowledge);

  // Derives a metric and adds it.
  absl::StatusOr<const Metric*> Derive(
      absl::string_view formula_id, v1::Scope scope,
      const std::vector<std::pair<std::string, const Metric*>>& inputs);

  // a, a + b, a + b + c, ... by a formula of two inputs "a" and "b"; nullptr
  // for no term.
  absl::StatusOr<const Metric*> Sum(absl::string_view formula_id, const v1::Scope& scope,
                                    const std::vector<const Metric*>& terms);

  // A parameter of config/classification.yaml as a metric; one for each name.
  absl::StatusOr<const Metric*> Parameter(absl::string_view name);

  // Metrics made here, behind those of the measurement.
  std::vector<v1::Metric> NewMetrics() const;

  const v1::Measurement& measurement() const { return *measurement_; }
  const MetricSet& metrics() const { return metrics_; }
  const MetricCatalogue& catalogue() const { return knowledge_->catalogue; }
  const ClassificationParameters& parameters() const { return knowledge_->parameters; }

 private:
  ClassifyDraft(const v1::Measurement& measurement, const Knowledge& knowledge)
      : measurement_(&measurement), knowledge_(&knowledge) {}

  const v1::Measurement* measurement_;
  const Knowledge* knowledge_;
  MetricSet metrics_;
  std::map<std::string, const Metric*, std::less<>> parameters_;
};

// "memory-bound", the name of a class in scopes of metrics.
std::string ClassName(v1::BottleneckClass bottleneck_class);

// Id of a class in the message tables: "class.memory_bound".
std::string ClassTerm(v1::BottleneckClass bottleneck_class);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_CLASSIFY_DRAFT_H_
