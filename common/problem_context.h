// Reads one `key=value` of the problem context, as `solward analyze --context`
// and answers to questions give them:
//
//   RETURN_IF_ERROR(ApplyContextValue("flops_per_call", "68.72 GFLOP", context));
//   RETURN_IF_ERROR(ApplyContextValue("B", "32", context));
#ifndef SOLWARD_COMMON_PROBLEM_CONTEXT_H_
#define SOLWARD_COMMON_PROBLEM_CONTEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "solward/v1/delegation.pb.h"

namespace solward {

// Sets one figure of `context`. A dimension (one letter, S_kv, stride, padding,
// dilation, groups) goes into the one operation of the context, which is made
// when there is none. INVALID_ARGUMENT (reason CONTEXT_KEY_UNKNOWN, with the
// closest key and all keys, or CONTEXT_VALUE_INVALID) leaves `context` as it was.
absl::Status ApplyContextValue(absl::string_view key, absl::string_view value,
                               v1::ProblemContext& context);

// "B=32 M=512, N=1024": several dimensions at once, all or none.
absl::Status ApplyDimensions(absl::string_view text, v1::ProblemContext& context);

// Every key ApplyContextValue knows, for help texts.
const std::vector<std::string>& ContextKeys();

// Canonical letter of a dimension ("m" -> "M", "head_dim" -> "D"); empty when
// it is none.
std::string DimensionName(absl::string_view name);

// "32", "7B", "1.5M", "1e9" to a number; B (or G) is 10^9.
absl::StatusOr<double> ParseCount(absl::string_view text);

// "gemm", "bmm", "batched_gemm", "conv", "attention", "transformer_training".
v1::OperationKind ParseOperationKind(absl::string_view text);
absl::string_view OperationKindName(v1::OperationKind kind);

// The kind that the dimensions alone tell (M, N and K: a GEMM, batched with B;
// C, H and W: a convolution; H and D: an attention); UNSPECIFIED otherwise.
v1::OperationKind KindOfDimensions(const v1::Operation& operation);

// The closest of `names` to `name` by edit distance, at most a third of its
// length (at least two edits) away; closest first, at most three.
std::vector<std::string> CloseNames(absl::string_view name, const std::vector<std::string>& names);

}  // namespace solward

#endif  // SOLWARD_COMMON_PROBLEM_CONTEXT_H_
