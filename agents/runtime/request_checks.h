// What a specialist checks of a request before anything is done with it.
#ifndef SOLWARD_AGENTS_RUNTIME_REQUEST_CHECKS_H_
#define SOLWARD_AGENTS_RUNTIME_REQUEST_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "solward/v1/specialist.pb.h"

namespace solward::runtime {

inline constexpr size_t kMaxKeyBytes = 128;
inline constexpr size_t kMaxChunkBytes = 1 << 20;
inline constexpr int kMaxRecomputeMetrics = 10'000;

// INVALID_ARGUMENT with one violation per field that is missing, too large or
// no number (reason REQUEST_FIELD), or with the offences of the outcome lint
// (reason DELEGATION_NOT_OUTCOME_ONLY).
absl::Status CheckDelegationRequest(const v1::DelegationRequest& request);

// Label, size and SHA-256 of a capture that is about to come.
// RESOURCE_EXHAUSTED (ARTIFACT_TOO_LARGE) above `max_bytes`.
absl::Status CheckCaptureHeader(const v1::PutCaptureHeader& header, uint64_t max_bytes);

absl::Status CheckRecomputeRequest(const v1::RecomputeRequest& request);

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_REQUEST_CHECKS_H_
