#include "clients/cli/progress.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace solward::cli {
namespace {

std::string EnumWords(absl::string_view name, absl::string_view prefix) {
  absl::ConsumePrefix(&name, prefix);
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", "-"}});
}

std::string DescribePlan(const v1::Plan& plan) {
  std::string line = "plan:";
  for (const v1::PlannedDelegation& planned : plan.delegations()) {
    absl::StrAppend(&line, " ask ", planned.specialist(), " for ",
                    planned.request().desired_metrics_size(), " metrics;");
  }
  if (!line.empty() && line.back() == ';') line.pop_back();
  return line;
}

}  // namespace

std::string ClassWords(v1::BottleneckClass bottleneck_class) {
  switch (bottleneck_class) {
    case v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS:
      return "undetermined (kernels)";
    case v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION:
      return "undetermined (profiler dilation)";
    case v1::BOTTLENECK_CLASS_UNDETERMINED_NO_EVIDENCE:
      return "undetermined (no evidence)";
    default:
      return EnumWords(v1::BottleneckClass_Name(bottleneck_class), "BOTTLENECK_CLASS_");
  }
}

std::string StateWords(v1::AnalysisState state) {
  return EnumWords(v1::AnalysisState_Name(state), "ANALYSIS_STATE_");
}

std::string DescribeEvent(const v1::AnalysisEvent& event) {
  const std::string stage = EnumWords(v1::Stage_Name(event.stage()), "STAGE_");
  std::string what;
  switch (event.what_case()) {
    case v1::AnalysisEvent::kMessage:
      what = event.message();
      break;
    case v1::AnalysisEvent::kPlan:
      what = DescribePlan(event.plan());
      break;
    case v1::AnalysisEvent::kQuestions:
      what = absl::StrCat(event.questions().questions_size(), " question(s) to answer");
      break;
    case v1::AnalysisEvent::kDelegation:
      what = absl::StrCat(event.delegation().specialist(), ": ",
                          event.delegation().progress().message());
      break;
    case v1::AnalysisEvent::kClassification:
      what = absl::StrCat("verdict: ", ClassWords(event.classification().primary()));
      break;
    case v1::AnalysisEvent::kError:
      what = absl::StrCat("error: ", event.error().message());
      break;
    case v1::AnalysisEvent::WHAT_NOT_SET:
      what = StateWords(event.state());
      break;
  }
  return absl::StrCat("[", stage, "] ", what);
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::Show(const v1::AnalysisEvent& event) {
  std::string line = DescribeEvent(event);
  if (terminal_) {
    constexpr size_t kColumns = 100;
    if (line.size() > kColumns) line.resize(kColumns);
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
    shown_ = true;
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

void ProgressLine::Clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace solward::cli
