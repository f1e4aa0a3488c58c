// Sizes a request may have, checked before anything else looks at it.
#ifndef SOLWARD_COORDINATOR_SERVICE_REQUEST_LIMITS_H_
#define SOLWARD_COORDINATOR_SERVICE_REQUEST_LIMITS_H_

#include "absl/status/status.h"
#include "solward/v1/analysis.pb.h"

namespace solward::service {

// Each returns INVALID_ARGUMENT (REQUEST_TOO_LARGE, KEY_INVALID) with one
// violation per field: what it is limited to and what was found.
absl::Status CheckRequestSizes(const v1::AnalysisRequest& request);
absl::Status CheckAnswerSizes(const v1::AnswerQuestionsRequest& request);
// Empty, or 1 to 128 printable ASCII characters.
absl::Status CheckKey(const std::string& key);
// Label, size and digest of a capture to come.
absl::Status CheckCaptureHeader(const v1::PutCaptureHeader& header);

inline constexpr size_t kMaxChunkBytes = 1 << 20;

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_REQUEST_LIMITS_H_
