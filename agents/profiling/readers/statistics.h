// Counts of what a reader could not use, by named cause.
#ifndef SOLWARD_AGENTS_PROFILING_READERS_STATISTICS_H_
#define SOLWARD_AGENTS_PROFILING_READERS_STATISTICS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "solward/v1/delegation.pb.h"

namespace solward::readers {

// Not thread-safe.
class Statistics {
 public:
  void Count(absl::string_view name, v1::ParseSeverity severity, absl::string_view explanation,
             uint64_t by = 1) {
    if (by == 0) return;
    auto found = counts_.find(name);
    if (found == counts_.end()) {
      v1::ParseStatistic statistic;
      statistic.set_name(std::string(name));
      statistic.set_severity(severity);
      statistic.set_explanation(std::string(explanation));
      found = counts_.emplace(std::string(name), std::move(statistic)).first;
    }
    found->second.set_count(found->second.count() + by);
  }

  // In order of name.
  std::vector<v1::ParseStatistic> Take() {
    std::vector<v1::ParseStatistic> all;
    for (auto& [name, statistic] : counts_) all.push_back(std::move(statistic));
    counts_.clear();
    return all;
  }

 private:
  std::map<std::string, v1::ParseStatistic, std::less<>> counts_;
};

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_STATISTICS_H_
