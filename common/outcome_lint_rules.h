// The tables of the outcome lint: words, and patterns made of them. Internal
// to outcome_lint.cc.
#ifndef SOLWARD_COMMON_OUTCOME_LINT_RULES_H_
#define SOLWARD_COMMON_OUTCOME_LINT_RULES_H_

#include <re2/re2.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/outcome_lint.h"

namespace solward::internal {

// Tokens that stand for something are replaced, byte for byte, before the
// patterns see the text.
constexpr char kDataFile = '\x02';     // report.csv, gemm.ncu-rep
constexpr char kProgramFile = '\x03';  // train.py, ./bench
constexpr char kPath = '\x04';         // /tmp/out, $SCRATCH/x, s3://bucket
constexpr char kWorkload = '\x05';     // a whole command of the workload

struct LintRule {
  OffenceKind kind;
  // Group 1 holds the offending words; the whole match when there is none.
  std::unique_ptr<RE2> pattern;
  // The rule does not hold when this matches the end of the text before the
  // words, respectively the whole segment. Null: it always holds.
  std::unique_ptr<RE2> unless_before, unless;
};

// Rules on a segment (a sentence or a part between semicolons): lower case,
// no accents, no line breaks.
struct LintRules {
  std::vector<LintRule> commands;  // before workload commands are recognised
  std::vector<LintRule> others;
  RE2 tool;              // names a profiling tool
  RE2 flag_name;         // an option of a command line, name in group 1
  RE2 workload_context;  // speaks of the workload
  RE2 workload_subject;  // the segment's subject is the workload
  LintRules();
};

const LintRules& Rules();

// `{NAME}` of a pattern replaced by the word table NAME.
std::string ExpandWords(absl::string_view pattern);

}  // namespace solward::internal

#endif  // SOLWARD_COMMON_OUTCOME_LINT_RULES_H_
