// The measurement while the steps of stage Measure work on it.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_MEASURE_DRAFT_H_
#define SOLWARD_COORDINATOR_WORKFLOW_MEASURE_DRAFT_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/metric.h"
#include "coordinator/workflow/knowledge.h"
#include "solward/v1/analysis.pb.h"

namespace solward::workflow {

// One metric that the client wants, groups expanded.
struct WantedMetric {
  std::string id;
  v1::ScopeKind scope = v1::SCOPE_KIND_UNSPECIFIED;  // UNSPECIFIED: the catalogue's default
};

struct MeasureDraft {
  const v1::Understanding& understanding;
  const Knowledge& knowledge;
  MetricSet metrics;
  v1::Measurement out;  // everything but its metrics

  const MetricCatalogue& catalogue() const { return knowledge.catalogue; }

  // Derives a metric and adds it.
  absl::StatusOr<const Metric*> Derive(
      absl::string_view formula_id, v1::Scope scope,
      const std::vector<std::pair<std::string, const Metric*>>& inputs);

  v1::Finding& AddFinding(
      absl::string_view id, v1::Severity severity,
      std::initializer_list<std::pair<absl::string_view, const Metric*>> metrics,
      std::initializer_list<std::pair<absl::string_view, absl::string_view>> words = {});

  void AddUnmeasured(absl::string_view id, v1::ScopeKind scope, v1::UnmeasuredReason reason,
                     absl::string_view detail, absl::string_view remedy);

  // First metric of the id that the client gave, said or that follows from it.
  const Metric* Context(absl::string_view id) const;

  // What the client wants, in order, without repetitions.
  std::vector<WantedMetric> Wanted() const;
  bool Wants(absl::string_view id) const;
};

// The steps, in this order.

// Results of all delegations into one set with new keys (merge_results.cc).
absl::Status MergeResults(const v1::Evidence& evidence, MeasureDraft& draft);
// Shares of the window that a specialist left to compute (timeline_shares.cc).
absl::Status AddWindowShares(MeasureDraft& draft);
// Dilation, shares rescaled to the unprofiled step time, throughput and latency
// (unprofiled.cc).
absl::Status AddUnprofiledMetrics(MeasureDraft& draft);
// Peaks, MFU and its factors, roofline (mfu.cc).
absl::Status AddPeakMetrics(MeasureDraft& draft);
// Findings where two captures give one metric differently (disagreements.cc).
void FindDisagreements(MeasureDraft& draft);
// Keys of the wanted metrics; what is wanted and absent (wanted.cc).
void SelectWanted(MeasureDraft& draft);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_MEASURE_DRAFT_H_
