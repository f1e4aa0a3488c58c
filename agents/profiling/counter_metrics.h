// Hardware counters of kernels (ncu) as metrics in KERNEL scope: the mean over
// the profiled launches of one function name on one device.
#ifndef SOLWARD_AGENTS_PROFILING_COUNTER_METRICS_H_
#define SOLWARD_AGENTS_PROFILING_COUNTER_METRICS_H_

#include <string>

#include "absl/status/status.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/result_builder.h"
#include "solward/v1/delegation.pb.h"

namespace solward::profiling {

struct CounterOptions {
  std::string artifact_id;
  v1::Constraints constraints;
  // Also total time and number of the profiled launches. Not beside a timeline,
  // which knows the launches of the whole region.
  bool with_totals = true;
};

// Metrics, kernel summaries, findings of the tool's own rules, devices.
// NOT_FOUND when the constraints leave no kernel (the message lists kernels).
absl::Status AddCounterMetrics(const readers::CounterReport& report, const CounterOptions& options,
                               ResultBuilder* builder);

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_COUNTER_METRICS_H_
