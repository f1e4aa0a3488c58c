// Command-line words to an AnalysisRequest.
#ifndef SOLWARD_CLIENTS_CLI_REQUEST_H_
#define SOLWARD_CLIENTS_CLI_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solward/v1/analysis.pb.h"

namespace solward::cli {

struct AnalyzeOptions {
  std::vector<std::string> captures;
  std::vector<std::string> metrics;
  std::vector<std::string> context;  // "key=value"
  std::string kernel;
  std::string region;
  std::string statement;
  std::string notes;
  std::string key;
};

// Everything but the captures. INVALID_ARGUMENT names the option and the word.
absl::StatusOr<v1::AnalysisRequest> BuildRequest(const AnalyzeOptions& options);

// "cuda_profiler_api", "profiler_step", "nvtx:NAME", "function:NAME", each with
// optional ",skip=N" and ",max=N".
absl::StatusOr<v1::Region> ParseRegion(const std::string& text);

}  // namespace solward::cli

#endif  // SOLWARD_CLIENTS_CLI_REQUEST_H_
