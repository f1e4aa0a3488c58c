// Recommendations: a reviewed catalogue (config/recommendations.yaml) matched
// against the verdict, the findings and the metrics. An entry is offered only
// for a class of the verdict; its effect is a bound computed from what was
// measured, never a number of the catalogue.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_RECOMMENDATIONS_H_
#define SOLWARD_COORDINATOR_WORKFLOW_RECOMMENDATIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/workflow/report_input.h"
#include "solward/v1/report.pb.h"

namespace solward::workflow {

struct RecommendationCondition {
  enum class Is { kPresent, kAbsent, kAbove, kBelow };
  std::string metric;   // catalogue id, or
  std::string finding;  // finding id
  Is is = Is::kPresent;
  double value = 0;  // in the metric's unit
};

struct RecommendationEntry {
  // What bounds the effect.
  enum class Effect {
    kNone,
    kClass,  // the recoverable share of the class
    kShare,  // the whole share of the class
    kClock,  // kernel time above the clock of the printed peak
  };
  std::string id;
  std::vector<v1::BottleneckClass> classes;
  bool kernel = false;        // speaks of the kernel of that limit
  bool always_check = false;  // what it needs is in no metric
  std::vector<std::string> any_finding;
  std::vector<RecommendationCondition> when;
  std::vector<RecommendationCondition> precondition;
  Effect effect = Effect::kNone;
  bool has_action = false, has_check = false;
};

// Immutable after Parse; thread-safe.
class RecommendationCatalogue {
 public:
  // INVALID_ARGUMENT names the entry and what is wrong with it: an unknown key,
  // class or metric, a missing text.
  static absl::StatusOr<RecommendationCatalogue> Parse(absl::string_view yaml,
                                                       const MetricCatalogue& metrics);

  const std::vector<RecommendationEntry>& entries() const { return entries_; }

 private:
  std::vector<RecommendationEntry> entries_;
};

const RecommendationCatalogue& BuiltInRecommendations();

// `findings` are those of the report, which recommendations rest on. An
// undetermined verdict gets nothing but what would settle it.
absl::StatusOr<v1::RecommendationsSection> MakeRecommendations(
    const RecommendationCatalogue& catalogue, const v1::FindingsSection& findings,
    ReportInput& input);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_RECOMMENDATIONS_H_
