// Answers put into a request, and the questions that are left. Internal to the
// Understand stage.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_UNDERSTAND_QUESTIONS_H_
#define SOLWARD_COORDINATOR_WORKFLOW_UNDERSTAND_QUESTIONS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/workflow/knowledge.h"
#include "coordinator/workflow/statement.h"
#include "coordinator/workflow/understand_request.h"
#include "solward/v1/analysis.pb.h"

namespace solward::workflow::internal {

// What the answers so far came to.
struct Answered {
  std::set<std::string> settled;               // ids not to be asked again
  std::set<std::string> skipped;               // of those, answered with "skip"
  std::map<std::string, std::string> errors;   // id -> what was wrong with its last answer
  std::map<std::string, std::string> metrics;  // unknown metric's question id -> id to take
  bool flops_win = false;                      // FLOPs and dimensions disagreed: take the FLOPs
  bool dimensions_win = false;
};

// Applies the answers in order. INVALID_ARGUMENT names an answer to a question
// that Understand never asks; a bad value is kept in `errors`.
absl::Status ApplyAnswers(const std::vector<v1::Answer>& answers, v1::AnalysisRequest& request,
                          Answered& answered);

// Everything the questions depend on.
struct QuestionInput {
  const v1::AnalysisRequest& request;  // with statement and answers merged in
  const StatementContent& statement;
  const std::vector<Conflict>& conflicts;
  const Answered& answered;
  const Knowledge& knowledge;
  bool metrics_named = false;  // the client named metrics, in fields or statement
};

std::vector<v1::Question> OpenQuestions(const QuestionInput& input);

// Id of the question about an unknown metric.
std::string UnknownMetricQuestion(const std::string& id);

}  // namespace solward::workflow::internal

#endif  // SOLWARD_COORDINATOR_WORKFLOW_UNDERSTAND_QUESTIONS_H_
