#include "clients/cli/request.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/metric_catalogue.h"
#include "common/problem_context.h"
#include "common/status.h"

namespace solward::cli {
namespace {

absl::Status UsageError(const std::string& message) {
  return MakeError(absl::StatusCode::kInvalidArgument, "USAGE", message);
}

absl::Status AddMetrics(const std::vector<std::string>& words, v1::AnalysisRequest& request) {
  for (const std::string& list : words) {
    for (absl::string_view word : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
      const std::string id(absl::StripAsciiWhitespace(word));
      if (BuiltInCatalogue().Find(id) == nullptr && BuiltInCatalogue().FindGroup(id) == nullptr) {
        return UsageError(absl::StrCat("--metrics ", id,
                                       ": no such metric; `solward metrics` "
                                       "lists them"));
      }
      request.add_desired_metrics()->set_id(id);
    }
  }
  return absl::OkStatus();
}

absl::Status AddContext(const std::vector<std::string>& words, v1::ProblemContext& context) {
  for (const std::string& list : words) {
    for (absl::string_view word : absl::StrSplit(list, ' ', absl::SkipWhitespace())) {
      const std::pair<absl::string_view, absl::string_view> pair =
          absl::StrSplit(word, absl::MaxSplits('=', 1));
      if (!absl::StrContains(word, '=') || pair.first.empty() || pair.second.empty()) {
        return UsageError(absl::StrCat("--context ", word,
                                       ": expected key=value, as in B=32 or "
                                       "step_time=24ms"));
      }
      RETURN_IF_ERROR(Annotate(ApplyContextValue(pair.first, pair.second, context), "--context"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::Region> ParseRegion(const std::string& text) {
  v1::Region region;
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  absl::string_view marker = parts[0];
  if (marker == "cuda_profiler_api") {
    region.set_cuda_profiler_api(true);
  } else if (marker == "profiler_step") {
    region.set_profiler_step(true);
  } else if (absl::ConsumePrefix(&marker, "nvtx:") && !marker.empty()) {
    region.set_nvtx_range(std::string(marker));
  } else if (absl::ConsumePrefix(&marker, "function:") && !marker.empty()) {
    region.set_function(std::string(marker));
  } else {
    return UsageError(absl::StrCat("--region ", text,
                                   ": expected cuda_profiler_api, "
                                   "profiler_step, nvtx:NAME or function:NAME"));
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    absl::string_view part = parts[i];
    uint32_t number = 0;
    if (absl::ConsumePrefix(&part, "skip=") && absl::SimpleAtoi(part, &number)) {
      region.set_skip_steps(number);
    } else if (absl::ConsumePrefix(&part, "max=") && absl::SimpleAtoi(part, &number)) {
      region.set_max_steps(number);
    } else {
      return UsageError(absl::StrCat("--region ", parts[i], ": expected skip=N or max=N"));
    }
  }
  return region;
}

absl::StatusOr<v1::AnalysisRequest> BuildRequest(const AnalyzeOptions& options) {
  v1::AnalysisRequest request;
  RETURN_IF_ERROR(AddMetrics(options.metrics, request));
  if (!options.context.empty()) {
    RETURN_IF_ERROR(AddContext(options.context, *request.mutable_context()));
  }
  if (!options.kernel.empty()) {
    request.mutable_constraints()->set_kernel_pattern(options.kernel);
  }
  if (!options.region.empty()) {
    ASSIGN_OR_RETURN(*request.mutable_region(), ParseRegion(options.region));
  }
  request.set_statement(options.statement);
  request.set_notes(options.notes);
  return request;
}

}  // namespace solward::cli
