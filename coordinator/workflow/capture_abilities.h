// Which metrics a kind of capture can give (config/capture_abilities.yaml).
#ifndef SOLWARD_COORDINATOR_WORKFLOW_CAPTURE_ABILITIES_H_
#define SOLWARD_COORDINATOR_WORKFLOW_CAPTURE_ABILITIES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/metric_catalogue.h"
#include "solward/v1/delegation.pb.h"

namespace solward::workflow {

// Immutable after Parse; thread-safe.
class CaptureAbilities {
 public:
  // INVALID_ARGUMENT names an unknown kind of capture, metric or evidence.
  static absl::StatusOr<CaptureAbilities> Parse(absl::string_view yaml,
                                                const MetricCatalogue& catalogue);

  // A capture of this kind can hold the metric. True for a kind that is not
  // known yet and for a metric that the table does not list.
  bool CanGive(v1::CaptureKind kind, absl::string_view metric_id) const;

  // Kinds of evidence that give the metric ("counters", "timeline").
  std::vector<std::string> EvidenceFor(absl::string_view metric_id) const;

 private:
  std::map<v1::CaptureKind, std::string> evidence_;
  std::map<std::string, std::set<std::string>, std::less<>> givers_;  // metric -> evidence
};

const CaptureAbilities& BuiltInCaptureAbilities();

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_CAPTURE_ABILITIES_H_
