// Errors in Solward are absl::Status with gRPC's codes. This header makes ones
// that also carry a stable reason and the offending fields, which travel over
// gRPC as google.rpc.ErrorInfo and google.rpc.BadRequest.
//
//   return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_UNKNOWN",
//                    "x.bin: expected a capture of ncu, nsys or torch.profiler, found ELF; ...");
//
//   ASSIGN_OR_RETURN(auto timeline, ReadNsys(path));
//   RETURN_IF_ERROR(store.Append(event));
#ifndef SOLWARD_COMMON_STATUS_H_
#define SOLWARD_COMMON_STATUS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grpc {
class Status;
}

namespace solward {

// One offence in one field of a request.
struct FieldViolation {
  std::string field;        // "delegation.statement"
  std::string description;  // what was found there and what is expected
};

// A status whose `reason` (UPPER_SNAKE_CASE) is stable across versions.
absl::Status MakeError(absl::StatusCode code, absl::string_view reason, absl::string_view message);

// INVALID_ARGUMENT naming every offending field.
absl::Status MakeBadRequest(absl::string_view reason, absl::string_view message,
                            const std::vector<FieldViolation>& violations);

// The reason of a status made here or received over gRPC; empty when it has none.
std::string ErrorReason(const absl::Status& status);

// The field violations of a status; empty when it has none.
std::vector<FieldViolation> FieldViolations(const absl::Status& status);

// Puts `context` before the message; code, reason and violations stay.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// To and from gRPC. Reason and violations travel as google.rpc.Status details.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace solward

#define SOLWARD_CONCAT_INNER_(a, b) a##b
#define SOLWARD_CONCAT_(a, b) SOLWARD_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expr)                                                                 \
  do {                                                                                        \
    if (absl::Status solward_status_ = (expr); !solward_status_.ok()) return solward_status_; \
  } while (false)

// `lhs` may be a declaration, which takes no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define ASSIGN_OR_RETURN_IMPL_(result, lhs, expr)      \
  auto result = (expr);                                \
  if (!result.ok()) return std::move(result).status(); \
  lhs = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)

#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL_(SOLWARD_CONCAT_(solward_result_, __LINE__), lhs, expr)

#endif  // SOLWARD_COMMON_STATUS_H_
