// Answers of the client, put into the request's own fields.
#include <re2/re2.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/problem_context.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/workflow/understand_questions.h"

namespace solward::workflow::internal {
namespace {

constexpr size_t kMaxAnswerBytes = 4096;

bool IsKnownQuestion(absl::string_view id) {
  for (const char* exact : {"flops_missing", "flops_disagree", "dtype_missing", "dtype_has_no_peak",
                            "workload_missing"}) {
    if (id == exact) return true;
  }
  for (const char* prefix : {"conflict_", "unknown_metric_", "capture_cannot_give_", "number_"}) {
    if (absl::StartsWith(id, prefix)) return true;
  }
  return false;
}

absl::Status Bad(absl::string_view name, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "ANSWER_INVALID",
                   absl::StrCat(name, ": ", what));
}

absl::Status SetKernel(const std::string& value, v1::AnalysisRequest& request) {
  const RE2 pattern(value, RE2::Quiet);
  if (value.empty() || value.size() > 1024 || !pattern.ok()) {
    return Bad("kernel", "expected an RE2 pattern of at most 1 KiB");
  }
  request.mutable_constraints()->set_kernel_pattern(value);
  return absl::OkStatus();
}

absl::Status SetWorkload(absl::string_view name, const std::string& value,
                         v1::AnalysisRequest& request) {
  const absl::string_view text = absl::StripAsciiWhitespace(value);
  if (text.empty()) return Bad(name, "expected a value, found none");
  if (name == "source_file") {
    request.mutable_workload()->mutable_source_file()->set_path(std::string(text));
    return absl::OkStatus();
  }
  // Words are split at blanks; a command that needs more is a structured field.
  if (text.find_first_of("'\"\\|<>;&$`") != absl::string_view::npos) {
    return Bad(name, "expected words without quotes or shell signs");
  }
  v1::Command& command = *request.mutable_workload()->mutable_command();
  command.clear_argv();
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    command.add_argv(std::string(word));
  }
  return absl::OkStatus();
}

// One answer into the request; `answer` has name and value set.
absl::Status Apply(const v1::Answer& answer, v1::AnalysisRequest& request, Answered& answered) {
  const std::string& name = answer.name();
  if (name == "region") {
    v1::Region region;
    RETURN_IF_ERROR(ParseRegion(answer.value(), region));
    region.set_skip_steps(request.region().skip_steps());
    region.set_max_steps(request.region().max_steps());
    *request.mutable_region() = region;
    return absl::OkStatus();
  }
  if (name == "kernel") return SetKernel(answer.value(), request);
  if (name == "source_file" || name == "command") {
    return SetWorkload(name, answer.value(), request);
  }
  if (name == "metric") {
    if (!absl::StartsWith(answer.question_id(), "unknown_metric_")) {
      return Bad(name, "no question asks for it");
    }
    answered.metrics[answer.question_id()] =
        std::string(absl::StripAsciiWhitespace(answer.value()));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(ApplyContextValue(name, answer.value(), *request.mutable_context()));
  if (answer.question_id() == "flops_disagree") {
    answered.dimensions_win = !absl::StartsWith(name, "flops");
    answered.flops_win = !answered.dimensions_win;
  }
  return absl::OkStatus();
}

// A choice of a question is written "name=value".
v1::Answer Normalized(v1::Answer answer) {
  if (answer.value() == "skip" || answer.value().size() > kMaxAnswerBytes) return answer;
  const size_t equals = answer.value().find('=');
  const bool whole_choice =
      equals != std::string::npos && answer.value().substr(0, equals) == answer.name();
  if (whole_choice) {
    answer.set_value(answer.value().substr(equals + 1));
  } else if ((answer.name().empty() || answer.name() == "choice") && equals != std::string::npos) {
    answer.set_name(answer.value().substr(0, equals));
    answer.set_value(answer.value().substr(equals + 1));
  }
  return answer;
}

bool Settles(absl::string_view id) {
  return absl::StartsWith(id, "conflict_") || absl::StartsWith(id, "number_") ||
         id == "flops_disagree";
}

}  // namespace

absl::Status ApplyAnswers(const std::vector<v1::Answer>& answers, v1::AnalysisRequest& request,
                          Answered& answered) {
  for (size_t i = 0; i < answers.size(); ++i) {
    const v1::Answer answer = Normalized(answers[i]);
    const std::string& id = answer.question_id();
    if (!IsKnownQuestion(id)) {
      const std::string field = absl::StrCat("answers[", i, "].question_id");
      const std::string what = absl::StrCat("expected the id of an open question, found \"",
                                            Truncate(CleanUtf8(id), 80), "\"");
      return MakeBadRequest("QUESTION_UNKNOWN", absl::StrCat(field, ": ", what), {{field, what}});
    }
    answered.settled.erase(id);
    answered.skipped.erase(id);
    answered.errors.erase(id);
    if (answer.name() == "skip" || answer.value() == "skip") {
      answered.settled.insert(id);
      answered.skipped.insert(id);
      continue;
    }
    if (answer.value().size() > kMaxAnswerBytes) {
      answered.errors[id] = absl::StrCat("expected at most ", kMaxAnswerBytes, " bytes");
      continue;
    }
    const absl::Status status = Apply(answer, request, answered);
    if (!status.ok()) {
      answered.errors[id] = std::string(status.message());
    } else if (Settles(id)) {
      answered.settled.insert(id);
    }
  }
  return absl::OkStatus();
}

}  // namespace solward::workflow::internal
