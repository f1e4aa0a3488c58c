// What the commands print, as text.
#ifndef SOLWARD_CLIENTS_CLI_PRINTING_H_
#define SOLWARD_CLIENTS_CLI_PRINTING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/units.h"
#include "solward/v1/analysis.pb.h"

namespace solward::cli {

absl::StatusOr<Language> ParseLanguage(const std::string& text);

// To a file (atomically) or, with an empty path, to stdout.
absl::Status WriteText(const std::string& text, const std::string& path);

// Columns padded to the widest cell, two spaces between; the first row is the
// heading.
std::string Table(const std::vector<std::vector<std::string>>& rows);

std::string DescribeQuestion(const v1::Question& question, Language language);
// All open questions, one after the other.
std::string DescribeQuestions(const v1::Analysis& analysis, Language language);
// OK when it succeeded; INPUT_REQUIRED with the questions and how to answer;
// else how it ended.
absl::Status EndStatus(const v1::Analysis& analysis);
std::string DescribePlan(const v1::Plan& plan,
                         const google::protobuf::RepeatedPtrField<v1::Question>& questions,
                         Language language);
std::string DescribeAnalysis(const v1::Analysis& analysis);

// A metric's value as a report prints it; empty when the id is unknown.
std::string FormatMetric(const v1::Metric& metric, Language language);

}  // namespace solward::cli

#endif  // SOLWARD_CLIENTS_CLI_PRINTING_H_
