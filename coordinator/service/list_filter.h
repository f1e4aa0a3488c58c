// The filter language and the page tokens of the list calls.
#ifndef SOLWARD_COORDINATOR_SERVICE_LIST_FILTER_H_
#define SOLWARD_COORDINATOR_SERVICE_LIST_FILTER_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/store/store.h"

namespace solward::service {

// Terms joined by AND: state=SUCCEEDED, class=memory-bound,
// since=2026-07-24T12:00:00Z. Each at most once; empty: everything. Fills
// `states`, `primary_class` and `since_ns`. INVALID_ARGUMENT (FILTER_INVALID)
// names the term and what would fit.
absl::StatusOr<store::ListQuery> ParseListFilter(const std::string& filter);

// 0 becomes 50; more than 1000 is INVALID_ARGUMENT.
absl::StatusOr<uint32_t> CheckPageSize(uint32_t page_size);

// Opaque tokens: a payload bound to what was asked (`scope`), so that a token
// of another list or filter is refused. INVALID_ARGUMENT (PAGE_TOKEN_INVALID).
std::string MakePageToken(absl::string_view scope, absl::string_view payload);
absl::StatusOr<std::string> ReadPageToken(absl::string_view scope, const std::string& token);

std::string EncodePosition(const store::ListPosition& position);
absl::StatusOr<store::ListPosition> DecodePosition(const std::string& payload);

// "memory-bound".
std::string ClassName(v1::BottleneckClass bottleneck_class);

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_LIST_FILTER_H_
