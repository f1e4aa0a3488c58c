// Looking things up in a delegation result, for tests.
#ifndef SOLWARD_AGENTS_PROFILING_RESULT_FIXTURE_H_
#define SOLWARD_AGENTS_PROFILING_RESULT_FIXTURE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "solward/v1/delegation.pb.h"

namespace solward::testing {

// Metrics of one id in one kind of scope, in order.
inline std::vector<v1::Metric> MetricsOf(const v1::DelegationResult& result, absl::string_view id,
                                         v1::ScopeKind kind) {
  std::vector<v1::Metric> found;
  for (const v1::Metric& metric : result.metrics()) {
    if (metric.id() == id && metric.scope().kind() == kind) found.push_back(metric);
  }
  return found;
}

// The one with this name (or a name that starts with it) and device; an empty
// metric, and a failure, when there is none.
inline v1::Metric MetricOf(const v1::DelegationResult& result, absl::string_view id,
                           v1::ScopeKind kind, absl::string_view name = "", int device = 0) {
  for (const v1::Metric& metric : MetricsOf(result, id, kind)) {
    const std::string& scope_name = metric.scope().name();
    const bool named = name.empty() ? scope_name.empty() : absl::StartsWith(scope_name, name);
    if (named && metric.scope().device() == device) return metric;
  }
  ADD_FAILURE() << "no metric " << id << " in " << v1::ScopeKind_Name(kind) << " of " << name;
  return {};
}

inline const v1::Metric& ByKey(const v1::DelegationResult& result, const std::string& key) {
  for (const v1::Metric& metric : result.metrics()) {
    if (metric.key() == key) return metric;
  }
  ADD_FAILURE() << "no metric with key " << key;
  return v1::Metric::default_instance();
}

inline std::vector<v1::Finding> FindingsOf(const v1::DelegationResult& result,
                                           absl::string_view id) {
  std::vector<v1::Finding> found;
  for (const v1::Finding& finding : result.findings()) {
    if (finding.id() == id) found.push_back(finding);
  }
  return found;
}

}  // namespace solward::testing

#endif  // SOLWARD_AGENTS_PROFILING_RESULT_FIXTURE_H_
