// Samples of nvidia-smi as metrics in DEVICE scope.
#ifndef SOLWARD_AGENTS_PROFILING_SMI_METRICS_H_
#define SOLWARD_AGENTS_PROFILING_SMI_METRICS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/result_builder.h"

namespace solward::profiling {

// A catalogue metric and the fields that give it: the query's names, then the
// paths of the XML of newer and older drivers.
struct SmiSource {
  absl::string_view metric_id;
  std::vector<absl::string_view> fields;
  v1::Aggregation aggregation;  // over several samples
};
const std::vector<SmiSource>& SmiSources();

absl::Status AddSmiMetrics(const readers::SmiReport& report, const std::string& artifact_id,
                           const v1::Constraints& constraints, ResultBuilder* builder);

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_SMI_METRICS_H_
