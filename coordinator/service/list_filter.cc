#include "coordinator/service/list_filter.h"

#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/sha256.h"
#include "common/status.h"

namespace solward::service {
namespace {

constexpr size_t kMaxFilterBytes = 1024;
constexpr size_t kDigestLength = 16;

absl::Status FilterError(const std::string& what) {
  return MakeBadRequest("FILTER_INVALID", absl::StrCat("filter: ", what), {{"filter", what}});
}

absl::StatusOr<v1::AnalysisState> ParseState(const std::string& value) {
  v1::AnalysisState state;
  if (v1::AnalysisState_Parse(absl::StrCat("ANALYSIS_STATE_", absl::AsciiStrToUpper(value)),
                              &state) &&
      state != v1::ANALYSIS_STATE_UNSPECIFIED) {
    return state;
  }
  return FilterError(absl::StrCat("state=", value,
                                  " is not a state; QUEUED, RUNNING, "
                                  "INPUT_REQUIRED, SUCCEEDED, FAILED or CANCELLED expected"));
}

absl::StatusOr<v1::BottleneckClass> ParseClass(const std::string& value) {
  std::vector<std::string> names;
  for (int i = 1; i < v1::BottleneckClass_ARRAYSIZE; ++i) {
    if (!v1::BottleneckClass_IsValid(i)) continue;
    const auto known = static_cast<v1::BottleneckClass>(i);
    if (ClassName(known) == absl::AsciiStrToLower(value)) return known;
    names.push_back(ClassName(known));
  }
  return FilterError(absl::StrCat("class=", value, " is not a class; one of ",
                                  absl::StrJoin(names, ", "), " expected"));
}

absl::StatusOr<int64_t> ParseSince(const std::string& value) {
  absl::Time time;
  std::string why;
  if (absl::ParseTime(absl::RFC3339_full, value, &time, &why)) return absl::ToUnixNanos(time);
  return FilterError(absl::StrCat("since=", value, " is not a time (", why,
                                  "); RFC 3339 as in 2026-07-24T12:00:00Z expected"));
}

}  // namespace

absl::StatusOr<store::ListQuery> ParseListFilter(const std::string& filter) {
  store::ListQuery query;
  const absl::string_view text = absl::StripAsciiWhitespace(filter);
  if (text.empty()) return query;
  if (text.size() > kMaxFilterBytes) return FilterError("longer than 1024 bytes");
  std::set<std::string> seen;
  for (absl::string_view part : absl::StrSplit(text, " AND ")) {
    const std::vector<std::string> sides =
        absl::StrSplit(absl::StripAsciiWhitespace(part), absl::MaxSplits('=', 1));
    if (sides.size() != 2 || sides[1].empty()) {
      return FilterError(absl::StrCat("'", part, "' is not of the form name=value"));
    }
    if (!seen.insert(sides[0]).second) {
      return FilterError(absl::StrCat("'", sides[0], "' stands in it twice"));
    }
    if (sides[0] == "state") {
      ASSIGN_OR_RETURN(const v1::AnalysisState state, ParseState(sides[1]));
      query.states = {state};
    } else if (sides[0] == "class") {
      ASSIGN_OR_RETURN(query.primary_class, ParseClass(sides[1]));
    } else if (sides[0] == "since") {
      ASSIGN_OR_RETURN(query.since_ns, ParseSince(sides[1]));
    } else {
      return FilterError(
          absl::StrCat("'", sides[0], "' is not known; state, class or since expected"));
    }
  }
  return query;
}

absl::StatusOr<uint32_t> CheckPageSize(uint32_t page_size) {
  if (page_size == 0) return 50;
  if (page_size <= 1000) return page_size;
  return MakeBadRequest("PAGE_SIZE_INVALID", "page_size: 1 to 1000 expected",
                        {{"page_size", absl::StrCat("1 to 1000 expected, found ", page_size)}});
}

std::string MakePageToken(absl::string_view scope, absl::string_view payload) {
  const std::string digest = Sha256Hex(absl::StrCat(scope, "\n", payload)).substr(0, kDigestLength);
  return absl::WebSafeBase64Escape(absl::StrCat(digest, payload));
}

absl::StatusOr<std::string> ReadPageToken(absl::string_view scope, const std::string& token) {
  std::string bytes;
  if (token.size() <= 1024 && absl::WebSafeBase64Unescape(token, &bytes) &&
      bytes.size() >= kDigestLength) {
    std::string payload = bytes.substr(kDigestLength);
    if (MakePageToken(scope, payload) == token) return payload;
  }
  return MakeBadRequest("PAGE_TOKEN_INVALID",
                        "page_token: not a token of this list; use next_page_token of the answer "
                        "before, with the same filter",
                        {{"page_token", "not a token of this list and filter"}});
}

std::string EncodePosition(const store::ListPosition& position) {
  return absl::StrCat(position.submit_time_ns, " ", position.id);
}

absl::StatusOr<store::ListPosition> DecodePosition(const std::string& payload) {
  const std::vector<std::string> parts = absl::StrSplit(payload, absl::MaxSplits(' ', 1));
  store::ListPosition position;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &position.submit_time_ns)) {
    return MakeBadRequest("PAGE_TOKEN_INVALID", "page_token: not a token of this list",
                          {{"page_token", "not a token of this list"}});
  }
  position.id = parts[1];
  return position;
}

std::string ClassName(v1::BottleneckClass bottleneck_class) {
  const std::string& name = v1::BottleneckClass_Name(bottleneck_class);
  return absl::AsciiStrToLower(
      absl::StrReplaceAll(absl::StripPrefix(name, "BOTTLENECK_CLASS_"), {{"_", "-"}}));
}

}  // namespace solward::service
