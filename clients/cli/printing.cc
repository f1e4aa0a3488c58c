#include "clients/cli/printing.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "clients/cli/progress.h"
#include "common/metric_catalogue.h"
#include "common/status.h"

namespace solward::cli {
namespace {

// Characters, not bytes, so that accents keep the columns straight.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<Language> ParseLanguage(const std::string& text) {
  if (text == "en") return Language::kEnglish;
  if (text == "fr") return Language::kFrench;
  return MakeError(absl::StatusCode::kInvalidArgument, "USAGE",
                   absl::StrCat("--lang ", text, ": expected en or fr"));
}

absl::Status WriteText(const std::string& text, const std::string& path) {
  if (path.empty()) {
    std::cout << text << std::flush;
    return std::cout ? absl::OkStatus()
                     : MakeError(absl::StatusCode::kInternal, "OUTPUT", "stdout cannot be written");
  }
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  {
    std::ofstream file(temporary, std::ios::binary);
    file << text << std::flush;
    if (!file) {
      return MakeError(absl::StatusCode::kPermissionDenied, "OUTPUT",
                       absl::StrCat("-o ", path, ": cannot be written"));
    }
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) {
    std::filesystem::remove(temporary);
    return MakeError(absl::StatusCode::kPermissionDenied, "OUTPUT",
                     absl::StrCat("-o ", path, ": ", error.message()));
  }
  return absl::OkStatus();
}

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&line, row[i]);
      if (i + 1 < row.size()) line.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    absl::StrAppend(&out, line, "\n");
  }
  return out;
}

std::string FormatMetric(const v1::Metric& metric, Language language) {
  const MetricDefinition* definition = BuiltInCatalogue().Find(metric.id());
  if (definition == nullptr) return "";
  return FormatQuantity(metric.value(), metric.unit(), definition->si, definition->decimals,
                        language);
}

std::string DescribeQuestion(const v1::Question& question, Language language) {
  const bool french = language == Language::kFrench;
  std::string out = absl::StrCat("Question ", question.id(), ": ",
                                 french ? question.text_fr() : question.text_en());
  if (question.choices_size() > 0) {
    absl::StrAppend(
        &out, french ? "\n  choix : " : "\n  choices: ", absl::StrJoin(question.choices(), ", "));
  }
  std::vector<std::string> names(question.accepts().begin(), question.accepts().end());
  names.erase(std::remove(names.begin(), names.end(), "skip"), names.end());
  if (!names.empty()) {
    absl::StrAppend(&out, french ? "\n  répondre par : " : "\n  answer with: ",
                    absl::StrJoin(names, "=…, "), "=…", french ? " ou skip" : " or skip");
  }
  return out;
}

std::string DescribeQuestions(const v1::Analysis& analysis, Language language) {
  std::string out;
  for (const v1::Question& question : analysis.questions()) {
    absl::StrAppend(&out, DescribeQuestion(question, language), "\n");
  }
  return out;
}

absl::Status EndStatus(const v1::Analysis& analysis) {
  if (analysis.state() == v1::ANALYSIS_STATE_SUCCEEDED) return absl::OkStatus();
  if (analysis.state() == v1::ANALYSIS_STATE_CANCELLED) {
    return MakeError(absl::StatusCode::kCancelled, "ANALYSIS_CANCELLED",
                     absl::StrCat("analysis ", analysis.id(), " was cancelled"));
  }
  if (analysis.state() == v1::ANALYSIS_STATE_INPUT_REQUIRED) {
    std::string text = DescribeQuestions(analysis, Language::kEnglish);
    absl::StrAppend(&text, "Answer all of them with: solward answer ", analysis.id());
    for (const v1::Question& question : analysis.questions()) {
      absl::StrAppend(&text, " ", question.id(), " NAME=VALUE");
    }
    return MakeError(absl::StatusCode::kFailedPrecondition, "INPUT_REQUIRED", text);
  }
  return MakeError(static_cast<absl::StatusCode>(analysis.error().code()),
                   analysis.error().reason(), analysis.error().message());
}

std::string DescribePlan(const v1::Plan& plan,
                         const google::protobuf::RepeatedPtrField<v1::Question>& questions,
                         Language language) {
  std::string out;
  for (const v1::PlannedDelegation& planned : plan.delegations()) {
    std::vector<std::string> ids;
    for (const auto& metric : planned.request().desired_metrics()) ids.push_back(metric.id());
    absl::StrAppend(&out, "Delegation to ", planned.specialist(),
                    "\n  wanted: ", absl::StrJoin(ids, ", "), "\n");
    for (const auto& capture : planned.request().workload().captures().captures()) {
      absl::StrAppend(&out, "  capture: ", capture.label(), "\n");
    }
    if (!planned.request().constraints().kernel_pattern().empty()) {
      absl::StrAppend(&out, "  kernels: ", planned.request().constraints().kernel_pattern(), "\n");
    }
  }
  if (plan.context_metrics_size() > 0) {
    absl::StrAppend(&out, "Problem context\n");
    std::vector<std::vector<std::string>> rows;
    for (const v1::Metric& metric : plan.context_metrics()) {
      const v1::Provenance& from = metric.provenance();
      rows.push_back({absl::StrCat("  ", metric.id()), metric.scope().name(),
                      FormatMetric(metric, language),
                      from.has_given()     ? absl::StrCat("given in ", from.given().field())
                      : from.has_derived() ? absl::StrCat("by ", from.derived().formula_id())
                                           : std::string("from the tables")});
    }
    absl::StrAppend(&out, Table(rows));
  }
  if (plan.readings_size() > 0) {
    absl::StrAppend(&out, "Read in the statement\n");
    std::vector<std::vector<std::string>> rows;
    for (const v1::StatementReading& reading : plan.readings()) {
      rows.push_back({absl::StrCat("  ", reading.kind()), reading.meaning(),
                      absl::StrCat("\"", reading.text(), "\"")});
    }
    absl::StrAppend(&out, Table(rows));
  }
  for (const v1::UnmeasuredMetric& unmeasured : plan.foreseen_unmeasured()) {
    absl::StrAppend(&out, "Will stay unmeasured: ", unmeasured.id(), " (", unmeasured.detail(),
                    ") ", unmeasured.remedy(), "\n");
  }
  for (const v1::Question& question : questions) {
    absl::StrAppend(&out, DescribeQuestion(question, language), "\n");
  }
  return out;
}

std::string DescribeAnalysis(const v1::Analysis& analysis) {
  std::vector<std::vector<std::string>> rows = {
      {"id", analysis.id()},
      {"state", StateWords(analysis.state())},
      {"submitted", TimeText(analysis.submit_time())},
      {"ended", TimeText(analysis.end_time())},
      {"caller", analysis.caller()},
      {"key", analysis.key()},
  };
  for (const auto& capture : analysis.request().workload().captures().captures()) {
    rows.push_back({"capture", absl::StrCat(capture.label(), " (artifact ", capture.id(), ")")});
  }
  if (analysis.has_error()) rows.push_back({"error", analysis.error().message()});
  std::string out = Table(rows);
  for (const v1::Question& question : analysis.questions()) {
    if (analysis.state() != v1::ANALYSIS_STATE_INPUT_REQUIRED) break;
    absl::StrAppend(&out, DescribeQuestion(question, Language::kEnglish), "\n");
  }
  return out;
}

}  // namespace solward::cli
