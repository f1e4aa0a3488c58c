#include "coordinator/workflow/report.h"

#include <google/protobuf/util/message_differencer.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "common/status_matchers.h"
#include "coordinator/report/number_check.h"
#include "coordinator/report/render.h"
#include "coordinator/workflow/report_fixture.h"

namespace solward::workflow {
namespace {

using ::solward::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Markdown(const v1::Report& report, Language language = Language::kEnglish) {
  const auto markdown = report::RenderMarkdown(report, BuiltInCatalogue(), language);
  EXPECT_TRUE(markdown.ok()) << markdown.status();
  return markdown.ok() ? *markdown : "";
}

std::vector<std::string> SummaryIds(const v1::Report& report) {
  std::vector<std::string> ids;
  for (const auto& statement : report.summary().statements()) ids.push_back(statement.message_id());
  return ids;
}

std::vector<std::string> FindingIds(const v1::Report& report) {
  std::vector<std::string> ids;
  for (const auto& reported : report.findings().findings()) ids.push_back(reported.finding().id());
  return ids;
}

// 100 µs of kernels, then 900 µs of waiting for 2,000 launches.
void AddLaunchLoop(ReportCase& c) {
  c.AddCapture("art-1", "launch.nsys.sqlite.gz", "nsys");
  c.AddTimeline({{"kernel", 100}, {"idle_launch", 900}});
  c.measurement.mutable_timelines(0)->add_metric_keys(
      c.Measured("launch_call_count", 2000, StepScope(0)).key());
  c.Want(c.Measured("kernel_count", 2045, StepScope(0)));
  v1::UnmeasuredMetric* throughput = c.measurement.add_unmeasured();
  throughput->set_id("throughput");
  throughput->mutable_scope()->set_kind(v1::SCOPE_KIND_RUN);
  throughput->set_reason(v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN);
}

void AddGemmWithMfu(ReportCase& c) {
  c.AddCapture("art-2", "bmm.ncu.raw.csv", "ncu");
  c.AddCountedKernel("gemm", {.compute = 84, .memory = 66, .dram = 50, .tensor = 84});
  const v1::Scope kernel = KernelScope("gemm", 0);
  const Metric& flops = c.Given("flops_per_call", 68.72e9, KernelScope(""));
  v1::Reference reference;
  reference.set_table("gpu_peaks");
  reference.set_row("H200-SXM");
  reference.set_column("fp16_tc");
  const Metric& peak = c.metrics.Add(
      *Metric::Refer(BuiltInCatalogue(), "peak_flops", 989.4e12, DeviceScope(0), reference));
  reference.set_column("tensor_mhz");
  const Metric& peak_clock = c.metrics.Add(
      *Metric::Refer(BuiltInCatalogue(), "peak_clock", 1.83e9, DeviceScope(0), reference));
  const Metric& clock = c.Measured("sm_clock", 1.5e9, kernel, "ncu", "art-2");
  c.Derived("clock_share", kernel, {{"clock", &clock}, {"peak_clock", &peak_clock}});
  const Metric* time = c.metrics.FindAll("kernel_time").front();
  c.Want(c.Derived("mfu_of_kernel", kernel, {{"flops", &flops}, {"time", time}, {"peak", &peak}}));
}

TEST(Keys, CountFromM1InOrderOfFirstUse) {
  ReportCase workload;
  AddLaunchLoop(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  ASSERT_FALSE(report.all_metrics().empty());
  for (int i = 0; i < report.all_metrics_size(); ++i) {
    EXPECT_EQ(report.all_metrics(i).key(), absl::StrCat("m", i + 1));
  }
  std::set<std::string> first;
  for (const auto& [name, argument] : report.summary().statements(0).arguments()) {
    if (!argument.metric_key().empty()) first.insert(argument.metric_key());
  }
  EXPECT_THAT(first, ElementsAre("m1", "m2"));
}

TEST(Keys, EveryInputOfADerivedMetricIsThereToo) {
  ReportCase workload;
  AddGemmWithMfu(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  for (const v1::Metric& metric : report.all_metrics()) {
    for (const v1::DerivedInput& input : metric.provenance().derived().inputs()) {
      EXPECT_NE(FindMetric(report, input.metric_key()), nullptr) << metric.key();
    }
  }
}

TEST(Keys, OfTheClassificationAreThoseOfTheReport) {
  ReportCase workload;
  AddLaunchLoop(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Classification before, workload.Classified());
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_EQ(report.classification().primary(), before.primary());
  EXPECT_TRUE(report.classification().metrics().empty());
  const v1::Metric* share = FindMetric(report, report.classification().ranking(0).share_key());
  ASSERT_NE(share, nullptr);
  EXPECT_EQ(share->id(), "idle_launch_share");
  EXPECT_DOUBLE_EQ(share->value(), 90);
}

TEST(Keys, AFindingThatNamesNoMetricIsInternal) {
  ReportCase workload;
  AddLaunchLoop(workload);
  (*workload.AddFinding("unpinned_copies", v1::SEVERITY_INFO).mutable_metric_keys())["copies"] =
      "m900";
  EXPECT_THAT(workload.Report(), StatusIs(absl::StatusCode::kInternal, HasSubstr("m900")));
}

TEST(Report, IsTheSameEveryTime) {
  ReportCase workload;
  AddLaunchLoop(workload);
  AddGemmWithMfu(workload);
  ASSERT_OK_AND_ASSIGN(v1::Report a, workload.Report());
  ASSERT_OK_AND_ASSIGN(v1::Report b, workload.Report());
  a.clear_created_time();
  b.clear_created_time();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(a, b));
  EXPECT_EQ(Markdown(a), Markdown(b));
}

TEST(Summary, OfAnOverheadNamesShareAndUpperBound) {
  ReportCase workload;
  AddLaunchLoop(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_THAT(SummaryIds(report), ElementsAre("summary.verdict.overhead", "summary.kernels_unrated",
                                              "summary.busy", "summary.throughput_unmeasured"));
  EXPECT_THAT(Markdown(report), HasSubstr("The bottleneck is launch-overhead: 90.0 % [m2] of the "
                                          "measured window"));
}

TEST(Summary, OfADilationSaysWhereTheVerdictFlips) {
  ReportCase workload;
  workload.AddTimeline({{"kernel", 500}, {"idle_launch", 500}});
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  ASSERT_EQ(report.classification().primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION);
  // 500 µs / (1 - 0.2)
  EXPECT_THAT(Markdown(report),
              HasSubstr("launch-overhead if a step takes more than 625.0 µs [m2] without the "
                        "profiler, limited by its kernels if less"));
}

TEST(Findings, WhatTheProfilerAloneMayHaveMadeIsNotAFindingOfTheWorkload) {
  ReportCase workload;
  workload.AddTimeline({{"kernel", 500}, {"idle_launch", 500}});
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_THAT(FindingIds(report), Contains("bottleneck_undetermined_profiler_dilation"));
  EXPECT_THAT(FindingIds(report), Not(Contains("bottleneck_launch_overhead")));
}

TEST(Summary, OfUnratedKernelsSaysThatCountersAreMissing) {
  ReportCase workload;
  workload.AddTimeline({{"kernel", 950}, {"idle_queued", 50}});
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_EQ(SummaryIds(report).front(), "summary.verdict.undetermined_kernels_share");
  EXPECT_THAT(Markdown(report), HasSubstr("kernels take 95.0 % [m1] of the measured window"));
}

TEST(Summary, OfNothingSaysSo) {
  ReportCase workload;
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_EQ(SummaryIds(report).front(), "summary.verdict.no_evidence");
  EXPECT_THAT(Markdown(report), HasSubstr("## Recommendations"));
}

TEST(Summary, NamesTheMfuWithItsTwoFactors) {
  ReportCase workload;
  AddGemmWithMfu(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_THAT(SummaryIds(report), Contains("summary.mfu_factors"));
  // 68.72 GFLOP in 100 µs of 989.4 TFLOP/s.
  const std::string markdown = Markdown(report);
  EXPECT_THAT(markdown, HasSubstr("MFU 69.5 % ["));
  EXPECT_THAT(markdown, HasSubstr("`H200-SXM fp16_tc`"));
  EXPECT_THAT(markdown, HasSubstr("1.50 GHz ["));
  EXPECT_THAT(markdown, HasSubstr("against 1.83 GHz ["));
}

TEST(Summary, HasAtMostFiveStatements) {
  ReportCase workload;
  AddLaunchLoop(workload);
  AddGemmWithMfu(workload);
  workload.Given("step_time", 1e6, StepScope());
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_LE(report.summary().statements_size(), 5);
}

TEST(Summary, SaysThatAGivenStepTimeIsTheClients) {
  ReportCase workload;
  AddLaunchLoop(workload);
  const Metric& step = workload.Given("step_time", 10e6, StepScope());
  workload.Derived("throughput", RunScope(), {{"step_time", &step}});
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_THAT(Markdown(report), HasSubstr("given by the client"));
  EXPECT_THAT(Markdown(report, Language::kFrench), HasSubstr("donnée par le client"));
}

TEST(Metrics, WantedRowsComeWithWhatExplainsThem) {
  ReportCase workload;
  AddGemmWithMfu(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  ASSERT_EQ(report.metrics().rows_size(), 1);
  std::vector<std::string> ids;
  for (const std::string& key : report.metrics().rows(0).companion_keys()) {
    ids.push_back(FindMetric(report, key)->id());
  }
  EXPECT_THAT(ids, ElementsAre("peak_flops", "tensor_pipe_utilization", "sm_clock", "clock_share",
                               "peak_clock"));
}

TEST(Metrics, SharesOfEveryRankStandInOneTableWithTheirSum) {
  ReportCase workload;
  workload.AddTimeline({{"kernel", 600}, {"exposed_communication", 400}}, 0, 0);
  workload.AddTimeline({{"kernel", 500}, {"exposed_communication", 500}}, 1, 1);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  ASSERT_EQ(report.metrics().time_tables_size(), 2);
  for (const v1::TimeTable& table : report.metrics().time_tables()) {
    EXPECT_EQ(table.share_keys_size(), 7);
    EXPECT_NEAR(FindMetric(report, table.sum_key())->value(), 100, 1e-9);
  }
  const std::string markdown = Markdown(report);
  EXPECT_THAT(markdown, HasSubstr("`GPU 0 rank 0`"));
  EXPECT_THAT(markdown, HasSubstr("`GPU 1 rank 1`"));
  // The verdict says which rank it speaks of: the one with the larger overhead.
  EXPECT_EQ(SummaryIds(report).front(), "summary.verdict.overhead_at");
  EXPECT_THAT(markdown, HasSubstr("communication-bound, seen on `GPU 1 rank 1`: 50.0 % ["));
  EXPECT_THAT(markdown, HasSubstr("Exposed communication share `GPU 0 rank 0` 40.0 % ["));
}

TEST(Metrics, KernelTableListsTheTenLongest) {
  ReportCase workload;
  for (int i = 0; i < 12; ++i) {
    workload.AddCountedKernel(absl::StrCat("kernel_", std::string(1, static_cast<char>('a' + i))),
                              {.compute = 20, .memory = 70, .time_us = 100.0 + i});
  }
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  ASSERT_EQ(report.metrics().kernels_size(), 10);
  EXPECT_EQ(report.metrics().kernels(0).kernel(), "kernel_l");
  EXPECT_EQ(report.metrics().kernels(9).kernel(), "kernel_c");
}

TEST(Metrics, UnmeasuredOnesAreListedWithTheirReason) {
  ReportCase workload;
  AddLaunchLoop(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_THAT(Markdown(report), HasSubstr("**Throughput** (run)\n  Only a run without a profiler"));
  EXPECT_THAT(Markdown(report, Language::kFrench), HasSubstr("**Débit** (exécution)"));
}

TEST(Findings, AreOrderedBySeverityThenShare) {
  ReportCase workload;
  AddLaunchLoop(workload);
  workload.AddFinding("graph_level_trace_hides_kernels", v1::SEVERITY_INFO);
  workload.AddFinding("mfu_suspicious", v1::SEVERITY_ERROR).set_detail("above the roof");
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  const std::vector<std::string> ids = FindingIds(report);
  EXPECT_EQ(ids[0], "mfu_suspicious");
  EXPECT_EQ(ids[1], "bottleneck_launch_overhead");
  EXPECT_THAT(ids, Contains("confidence"));
}

TEST(Findings, OfAnUnknownKindAreShownWithTheirOwnWords) {
  ReportCase workload;
  AddLaunchLoop(workload);
  v1::Finding& finding = workload.AddFinding("new_kind", v1::SEVERITY_WARNING);
  finding.set_detail("something nobody has seen before");
  const std::string copies = workload.Measured("pageable_copy_count", 7, RunScope(0)).key();
  (*finding.mutable_metric_keys())["copies"] = copies;
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  const std::string markdown = Markdown(report);
  EXPECT_THAT(markdown, HasSubstr("“`something nobody has seen before`” (`new_kind`)"));
  EXPECT_THAT(markdown, HasSubstr("Evidence: Copies from pageable memory 7 copies ["));
}

TEST(Findings, SayWhichCaptureWasNotRead) {
  ReportCase workload;
  AddLaunchLoop(workload);
  v1::CaptureOutcome* broken = workload.measurement.add_captures();
  broken->set_label("broken.json");
  broken->set_code(3);
  broken->set_message("broken.json: expected a closing brace, found the end of the file");
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_EQ(FindingIds(report).front(), "capture_unreadable");
  EXPECT_THAT(Markdown(report), HasSubstr("“`broken.json: expected a closing brace"));
}

TEST(Findings, SayThatTheCudaGraphSpecialistCouldNotAnswer) {
  ReportCase workload;
  AddLaunchLoop(workload);
  v1::DelegationOutcome* outcome = workload.measurement.add_unanswered();
  outcome->mutable_planned()->set_specialist("perf-torch-cuda-graph-specialist");
  outcome->mutable_error()->set_message("not implemented yet");
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_THAT(Markdown(report),
              HasSubstr("`perf-torch-cuda-graph-specialist` was wanted and could not answer: "
                        "“`not implemented yet`”"));
  EXPECT_FALSE(report.recommendations().recommendations().empty());
}

TEST(Findings, RateTheLongestKernels) {
  ReportCase workload;
  workload.AddCountedKernel("axpy", {.compute = 10, .memory = 71, .dram = 71});
  workload.AddCountedKernel("fma_loop", {.compute = 94, .memory = 2, .time_us = 50});
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  const std::string markdown = Markdown(report);
  EXPECT_THAT(markdown, HasSubstr("`axpy` is memory-bound: 71.0 % ["));
  EXPECT_THAT(markdown, HasSubstr("`fma_loop` is compute-bound: 94.0 % ["));
}

TEST(Findings, CountWhatReadersDropped) {
  ReportCase workload;
  AddLaunchLoop(workload);
  v1::ParseStatistic* dropped = workload.measurement.add_parse_statistics();
  dropped->set_name("events_without_duration");
  dropped->set_severity(v1::PARSE_SEVERITY_DATA_LOSS);
  dropped->set_count(12);
  workload.measurement.add_parse_statistics()->set_name("nothing_happened");
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  ASSERT_EQ(report.findings().parse_statistics_size(), 1);
  EXPECT_THAT(Markdown(report), HasSubstr("data loss, `events_without_duration = 12`"));
  EXPECT_THAT(FindingIds(report), Contains("confidence"));
}

// Every finding kind of the other stages, with all that its sentence may need.
struct KnownFinding {
  std::string id;
  std::vector<std::pair<std::string, std::string>> metrics;  // name, catalogue id
  std::vector<std::string> words;
};

const KnownFinding kKnownFindings[] = {
    {"tools_disagree",
     {{"first", "kernel_time"}, {"second", "kernel_time"}},
     {"metric", "first_tool", "second_tool"}},
    {"profilers_slow_host_differently",
     {{"first_step", "profiled_step_time"},
      {"second_step", "profiled_step_time"},
      {"first_busy", "gpu_busy_time"},
      {"second_busy", "gpu_busy_time"},
      {"first_idle", "idle_share"},
      {"second_idle", "idle_share"}},
     {"first_tool", "second_tool"}},
    {"profiler_slows_host",
     {{"dilation", "dilation"}, {"profiled", "profiled_step_time"}, {"step_time", "step_time"}},
     {"tool"}},
    {"dilation_unmeasured", {{"profiled", "profiled_step_time"}}, {"tool"}},
    {"busy_dilated", {{"busy", "gpu_busy_time"}, {"step_time", "step_time"}}, {"tool"}},
    {"unpinned_copies",
     {{"count", "pageable_copy_count"},
      {"bytes", "pageable_copy_bytes"},
      {"time", "pageable_copy_time"}},
     {}},
    {"synchronizations_per_step",
     {{"count", "synchronization_count"}, {"time", "synchronization_time"}},
     {"api"}},
    {"tool_rule", {{"estimate", "tool_speedup_estimate"}}, {"rule", "kernel", "tool"}},
    {"graph_level_trace_hides_kernels", {}, {}},
    {"mfu_impossible", {{"mfu", "mfu"}, {"limit", "mfu_limit"}}, {}},
    {"mfu_kernel_chosen", {{"time", "kernel_time"}, {"flops", "flops_per_call"}}, {"kernel"}},
    {"mfu_over_all_ranks", {{"flops", "flops_per_step"}, {"ranks", "world_size"}}, {}},
};

class EveryKnownFinding : public ::testing::TestWithParam<KnownFinding> {};

TEST_P(EveryKnownFinding, HasItsOwnSentenceInBothLanguages) {
  ReportCase workload;
  AddLaunchLoop(workload);
  v1::Finding& finding = workload.AddFinding(GetParam().id, v1::SEVERITY_WARNING);
  finding.set_detail("What the specialist says, with 3 numbers of its own.");
  double value = 7;
  for (const auto& [name, id] : GetParam().metrics) {
    (*finding.mutable_metric_keys())[name] =
        workload.Measured(id, value++, StepScope(3), "torch.profiler").key();
  }
  for (const std::string& word : GetParam().words) {
    (*finding.mutable_words())[word] = word == "metric" ? "kernel_time" : "word of " + word;
  }
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  for (const auto& reported : report.findings().findings()) {
    if (reported.finding().id() != GetParam().id) continue;
    EXPECT_EQ(reported.statement().message_id(), "finding." + GetParam().id);
  }
  EXPECT_THAT(FindingIds(report), Contains(GetParam().id));
  for (const Language language : {Language::kEnglish, Language::kFrench}) {
    EXPECT_THAT(report::NumbersWithoutMetric(Markdown(report, language), report, BuiltInCatalogue(),
                                             language),
                IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryKnownFinding, ::testing::ValuesIn(kKnownFindings),
                         [](const auto& kind) { return kind.param.id; });

// No number in a report that is not a metric's, whatever the verdict.
TEST(EveryVerdict, PrintsOnlyNumbersOfMetrics) {
  std::vector<ReportCase> cases(7);
  AddLaunchLoop(cases[0]);
  AddGemmWithMfu(cases[1]);
  cases[2].AddTimeline({{"kernel", 500}, {"idle_launch", 500}});
  cases[3].AddTimeline({{"kernel", 950}, {"idle_queued", 50}});
  cases[4].AddTimeline({{"kernel", 600}, {"exposed_communication", 400}}, 0, 0);
  cases[4].AddTimeline({{"kernel", 500}, {"exposed_communication", 500}}, 1, 1);
  cases[5].AddTimeline({{"kernel", 300}, {"exposed_transfer", 340}, {"idle_launch", 360}});
  AddLaunchLoop(cases[6]);
  AddGemmWithMfu(cases[6]);
  for (ReportCase& workload : cases) {
    ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
    for (const Language language : {Language::kEnglish, Language::kFrench}) {
      EXPECT_THAT(report::NumbersWithoutMetric(Markdown(report, language), report,
                                               BuiltInCatalogue(), language),
                  IsEmpty());
    }
  }
}

}  // namespace
}  // namespace solward::workflow
