// Outcome lint: a delegation says what is wanted, never how. Both the
// coordinator and the specialist run it on every free-text field.
//
//   for (const Offence& o : LintOutcomeText("If ncu fails, use nsys."))
//     ...                                // kFallback, "If ncu fails, use nsys"
//
// The rules are tables in outcome_lint_rules.cc; docs/delegation-rules.md says
// what each kind is and how to say it instead.
#ifndef SOLWARD_COMMON_OUTCOME_LINT_H_
#define SOLWARD_COMMON_OUTCOME_LINT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace solward {

// The five things a delegation must not contain.
enum class OffenceKind { kToolFlags, kToolSteps, kFallback, kExampleCommand, kOutputPath };

absl::string_view OffenceKindName(OffenceKind kind);  // "tool_flags", ...

// How to say it instead, in English, one clause ("say which metrics ...").
absl::string_view OffenceAdvice(OffenceKind kind);

struct Offence {
  OffenceKind kind;
  std::string words;  // the offending words as written
  size_t offset = 0;  // byte offset in the text
};

// Offences of an English or French text in order of offset. Offences of one
// kind never overlap. Linear in the length of the text. Thread-safe.
std::vector<Offence> LintOutcomeText(absl::string_view text);

struct LintedField {
  std::string field;  // "request.statement"
  std::string text;
};

// INVALID_ARGUMENT (reason DELEGATION_NOT_OUTCOME_ONLY) with one violation per
// offence, each naming the kind, the words and how to say it instead.
absl::Status LintFields(const std::vector<LintedField>& fields);

}  // namespace solward

#endif  // SOLWARD_COMMON_OUTCOME_LINT_H_
