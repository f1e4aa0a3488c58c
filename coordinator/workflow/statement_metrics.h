// Finds the metrics a statement names, by the words of the catalogue. Internal
// to the statement reader.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_METRICS_H_
#define SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_METRICS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/metric_catalogue.h"

namespace solward::workflow::internal {

struct MetricMention {
  std::string id;             // metric or group
  size_t begin = 0, end = 0;  // offsets in the text given
  bool is_unit = false;       // "throughput in tokens/sec": only says in what
};

// Longest match of synonyms, at word borders, hyphens and blanks alike; words
// that share their head ("compute/memory throughput", "throughput calcul et
// mémoire") count as each of them. `lower` is folded text.
std::vector<MetricMention> FindMetrics(absl::string_view lower, const MetricCatalogue& catalogue);

}  // namespace solward::workflow::internal

#endif  // SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_METRICS_H_
