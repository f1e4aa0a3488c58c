// Outcome lint: a delegation says what is wanted, never how. Both the
// coordinator and the specialist run it on every free-text field.
#ifndef SOLWARD_COMMON_OUTCOME_LINT_H_
#define SOLWARD_COMMON_OUTCOME_LINT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace solward {

// The five things a delegation must not contain.
enum class OffenceKind { kToolFlags, kToolSteps, kFallback, kExampleCommand, kOutputPath };

absl::string_view OffenceKindName(OffenceKind kind);   // "tool_flags", ...

struct Offence {
  OffenceKind kind;
  std::string words;     // the offending words as written
  size_t offset = 0;     // byte offset in the text
};

// Offences of an English or French text in order of offset; at most one of a
// kind per sentence. Linear in the length of the text.
std::vector<Offence> LintOutcomeText(absl::string_view text);

struct LintedField {
  std::string field;     // "request.statement"
  std::string text;
};

// INVALID_ARGUMENT (reason DELEGATION_NOT_OUTCOME_ONLY) with one violation per
// offence, each naming the kind, the words and how to say it instead.
absl::Status LintFields(const std::vector<LintedField>& fields);

}  // namespace solward

#endif  // SOLWARD_COMMON_OUTCOME_LINT_H_
