#include "coordinator/workflow/measure.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "common/status_matchers.h"
#include "coordinator/workflow/evidence_fixture.h"

namespace solward::workflow {
namespace {

using ::solward::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace ::solward::workflow::testing;  // NOLINT: the fixture's builders

v1::Measurement MeasureAll(const UnderstandingFixture& understanding,
                           std::vector<v1::DelegationResult> results) {
  auto measurement =
      Measure(understanding.Done(), EvidenceOf(std::move(results)), BuiltInKnowledge());
  if (!measurement.ok()) throw std::runtime_error(std::string(measurement.status().message()));
  return *std::move(measurement);
}

v1::DelegationResult TimelineOf(const std::string& file, const std::string& tool,
                                const HostCounts& counts = {.kernels = 1}) {
  ResultFixture fixture;
  fixture.AddTimeline(tool, ReadShares(file), counts);
  return fixture.Finish();
}

UnderstandingFixture StepTime(double ms) {
  return UnderstandingFixture().Give("step_time", ms * kMs, v1::SCOPE_KIND_STEP);
}

double StepShare(const v1::Measurement& measurement, const std::string& id) {
  return OneMetric(measurement.metrics(), id, v1::SCOPE_KIND_STEP).value();
}

double RunShare(const v1::Measurement& measurement, const std::string& id) {
  return OneMetric(measurement.metrics(), id, v1::SCOPE_KIND_RUN).value();
}

// --- merging --------------------------------------------------------------------

TEST(Measure, GivesTwoResultsWithTheSameKeysKeysOfTheirOwn) {
  const auto one_kernel = [](const std::string& artifact, const std::string& kernel) {
    ResultFixture fixture;
    fixture.AddCounters(artifact, {{.kernel = kernel, .time_us = 1, .compute = 1, .memory = 2}});
    v1::Finding& finding = *fixture.result().add_findings();
    finding.set_id("tool_rule");
    (*finding.mutable_metric_keys())["estimate"] = "m1";
    return fixture.Finish();
  };
  const v1::Measurement measurement = MeasureAll({}, {one_kernel("a", "f"), one_kernel("b", "g")});
  ASSERT_EQ(measurement.kernels_size(), 2);
  for (int i = 0; i < measurement.metrics_size(); ++i) {
    EXPECT_EQ(measurement.metrics(i).key(), "m" + std::to_string(i + 1));
  }
  for (const v1::KernelSummary& kernel : measurement.kernels()) {
    for (const std::string& key : kernel.metric_keys()) {
      const int index = std::stoi(key.substr(1)) - 1;
      EXPECT_EQ(measurement.metrics(index).scope().name(), kernel.name());
    }
  }
  ASSERT_EQ(measurement.findings_size(), 2);
  const std::string& second = measurement.findings(1).metric_keys().at("estimate");
  EXPECT_EQ(measurement.metrics(std::stoi(second.substr(1)) - 1).scope().name(), "g");
}

TEST(Measure, AMetricWithoutProvenanceIsAnInternalErrorThatNamesTheSpecialist) {
  v1::DelegationResult result = TimelineOf("h200/launch.nsys.sqlite.gz", "nsys");
  result.mutable_metrics(0)->clear_provenance();
  EXPECT_THAT(Measure({}, EvidenceOf({result}), BuiltInKnowledge()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("perf-profiling-specialist")));
}

TEST(Measure, AKeyThatNoMetricHasIsAnInternalError) {
  v1::DelegationResult result = TimelineOf("h200/launch.nsys.sqlite.gz", "nsys");
  result.mutable_timelines(0)->add_metric_keys("nowhere");
  EXPECT_THAT(Measure({}, EvidenceOf({result}), BuiltInKnowledge()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("nowhere")));
}

TEST(Measure, ADelegationThatFailedIsUnansweredAndTheRestCounts) {
  v1::Evidence evidence = EvidenceOf({TimelineOf("h200/launch.nsys.sqlite.gz", "nsys")});
  v1::DelegationOutcome& failed = *evidence.add_outcomes();
  failed.mutable_planned()->set_specialist("perf-torch-cuda-graph-specialist");
  failed.mutable_error()->set_reason("NOT_BUILT");
  const auto measurement = Measure({}, evidence, BuiltInKnowledge());
  ASSERT_TRUE(measurement.ok()) << measurement.status();
  ASSERT_EQ(measurement->unanswered_size(), 1);
  EXPECT_EQ(measurement->unanswered(0).error().reason(), "NOT_BUILT");
  EXPECT_EQ(measurement->timelines_size(), 1);
}

TEST(Measure, NothingAtAllIsNoError) {
  const v1::Measurement measurement = MeasureAll(UnderstandingFixture().Want("sol"), {});
  ASSERT_NE(FindUnmeasured(measurement, "sol"), nullptr);
  EXPECT_EQ(FindUnmeasured(measurement, "sol")->reason(), v1::UNMEASURED_REASON_NO_SPECIALIST);
}

// --- shares -----------------------------------------------------------------------

TEST(Measure, SharesOfTheWindowAreDerivedFromTheTimes) {
  const v1::Measurement measurement =
      MeasureAll({}, {TimelineOf("h200/launch.nsys.sqlite.gz", "nsys")});
  EXPECT_NEAR(RunShare(measurement, "idle_launch_share"), 86.7, 1e-9);
  EXPECT_NEAR(RunShare(measurement, "idle_host_share"), 2.8, 1e-9);
  EXPECT_NEAR(RunShare(measurement, "gpu_busy_share"), 10.4, 1e-9);
  EXPECT_FALSE(HasMetric(measurement.metrics(), "idle_launch_share", v1::SCOPE_KIND_STEP));
}

TEST(Measure, SharesThatTheSpecialistGaveStay) {
  ResultFixture fixture;
  fixture.AddTimeline("nsys", ReadShares("h200/launch.nsys.sqlite.gz"), {.kernels = 1});
  v1::Timeline& timeline = *fixture.result().mutable_timelines(0);
  timeline.add_metric_keys(fixture.AddMeasured("gpu_busy_share", 10.5, RunScope(0), "nsys",
                                               timeline.artifact_id(), "busy"));
  EXPECT_EQ(RunShare(MeasureAll({}, {fixture.Finish()}), "gpu_busy_share"), 10.5);
}

// The last column of shares.tsv.
TEST(Measure, AStepTimeRescalesTheSharesAndLaunchShrinksFirst) {
  const v1::Measurement rnn =
      MeasureAll(StepTime(5.225), {TimelineOf("ground_truth/rnn_small.nsys.sqlite.gz", "nsys")});
  EXPECT_NEAR(StepShare(rnn, "kernel_share"), 94.3, 1);
  EXPECT_NEAR(StepShare(rnn, "idle_queued_share"), 1.7, 0.2);
  EXPECT_NEAR(StepShare(rnn, "idle_host_share"), 0.6, 0.2);
  EXPECT_NEAR(StepShare(rnn, "idle_launch_share"), 3.4, 0.5);
  EXPECT_NEAR(RunShare(rnn, "idle_launch_share"), 57.0, 0.1);  // the window's stay

  const v1::Measurement sync =
      MeasureAll(StepTime(1.972), {TimelineOf("ground_truth/sync_gemm.nsys.sqlite.gz", "nsys")});
  EXPECT_NEAR(StepShare(sync, "idle_sync_share"), 39.5, 0.5);
  EXPECT_NEAR(StepShare(sync, "idle_queued_share"), 7.9, 0.2);
  EXPECT_NEAR(StepShare(sync, "exposed_transfer_share"), 2.9, 0.2);
  EXPECT_EQ(StepShare(sync, "idle_launch_share"), 0);
}

// 33.675 ms busy by nsys in a step that takes 31.209 ms.
TEST(Measure, BusyTimeLongerThanTheStepIsTheWholeAndSaid) {
  const v1::Measurement measurement =
      MeasureAll(StepTime(31.209), {TimelineOf("ground_truth/h2d.nsys.sqlite.gz", "nsys")});
  EXPECT_EQ(StepShare(measurement, "gpu_busy_share"), 100);
  EXPECT_EQ(StepShare(measurement, "idle_share"), 0);
  EXPECT_NEAR(StepShare(measurement, "exposed_transfer_share"), 91.7, 0.2);
  EXPECT_NE(FindFinding(measurement, "busy_dilated"), nullptr);
}

// --- dilation, throughput, latency ---------------------------------------------------

// 11.73 ms under nsys, 5.225 without.
TEST(Measure, DilationIsTheProfiledStepOverTheStep) {
  const v1::Measurement measurement =
      MeasureAll(StepTime(5.225), {TimelineOf("ground_truth/rnn_small.nsys.sqlite.gz", "nsys")});
  EXPECT_NEAR(RunShare(measurement, "dilation"), 2.245, 0.001);
  const v1::Finding* finding = FindFinding(measurement, "profiler_slows_host");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->words().at("tool"), "nsys");
  EXPECT_EQ(FindFinding(measurement, "dilation_unmeasured"), nullptr);
}

TEST(Measure, AProfilerThatCostsNothingIsNotBlamed) {
  const v1::Measurement measurement =
      MeasureAll(StepTime(1.286), {TimelineOf("ground_truth/ew_chain.nsys.sqlite.gz", "nsys")});
  EXPECT_EQ(FindFinding(measurement, "profiler_slows_host"), nullptr);
  EXPECT_NE(FindFinding(measurement, "profiler_cost_small"), nullptr);
}

TEST(Measure, WhatOneToolDoesToAllRanksIsSaidOnce) {
  ResultFixture fixture;
  fixture.AddTimeline("nsys", ReadShares("h200/comm.nsys.sqlite.gz", 0), {.kernels = 168}, 0);
  fixture.AddTimeline("nsys", ReadShares("h200/comm.nsys.sqlite.gz", 1), {.kernels = 168}, 1);
  const v1::Measurement measurement = MeasureAll({}, {fixture.Finish()});
  EXPECT_EQ(measurement.findings_size(), 1);
  EXPECT_EQ(measurement.findings(0).id(), "dilation_unmeasured");
}

TEST(Measure, AStepTimeLongerThanTheProfiledOneIsDoubted) {
  const v1::Measurement measurement =
      MeasureAll(StepTime(100), {TimelineOf("ground_truth/ew_chain.nsys.sqlite.gz", "nsys")});
  EXPECT_NE(FindFinding(measurement, "step_time_longer_than_profiled"), nullptr);
}

TEST(Measure, WithoutAStepTimeDilationIsUnmeasured) {
  const v1::Measurement measurement =
      MeasureAll({}, {TimelineOf("ground_truth/rnn_small.nsys.sqlite.gz", "nsys")});
  EXPECT_FALSE(HasMetric(measurement.metrics(), "dilation", v1::SCOPE_KIND_RUN));
  EXPECT_NE(FindFinding(measurement, "dilation_unmeasured"), nullptr);
}

TEST(Measure, AStepTimeForATimelineWithoutStepsIsSaid) {
  const v1::Measurement measurement =
      MeasureAll(StepTime(1), {TimelineOf("h200/axpy.nsys.sqlite.gz", "nsys")});
  EXPECT_NE(FindFinding(measurement, "step_time_without_steps"), nullptr);
  EXPECT_FALSE(HasMetric(measurement.metrics(), "kernel_share", v1::SCOPE_KIND_STEP));
}

TEST(Measure, ThroughputAndLatencyFollowFromTheStepTimeAlone) {
  UnderstandingFixture context = StepTime(10);
  context.Give("batch_size", 8, v1::SCOPE_KIND_STEP)
      .Give("sequence_length", 512, v1::SCOPE_KIND_STEP);
  const v1::Measurement measurement = MeasureAll(context, {});
  EXPECT_DOUBLE_EQ(RunShare(measurement, "throughput"), 100);
  EXPECT_DOUBLE_EQ(RunShare(measurement, "sample_throughput"), 800);
  EXPECT_DOUBLE_EQ(RunShare(measurement, "token_throughput"), 409'600);
  EXPECT_DOUBLE_EQ(OneMetric(measurement.metrics(), "latency", v1::SCOPE_KIND_STEP).value(), 10e6);
}

TEST(Measure, ThroughputOfAProfiledRunIsUnmeasured) {
  const v1::Measurement measurement =
      MeasureAll(UnderstandingFixture().Want("throughput").Want("latency"),
                 {TimelineOf("h200/launch.nsys.sqlite.gz", "nsys")});
  for (const char* id : {"throughput", "latency"}) {
    ASSERT_NE(FindUnmeasured(measurement, id), nullptr);
    EXPECT_EQ(FindUnmeasured(measurement, id)->reason(),
              v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN);
    EXPECT_FALSE(FindUnmeasured(measurement, id)->remedy().empty());
  }
}

TEST(Measure, SamplesPerSecondNeedABatchSize) {
  UnderstandingFixture context = StepTime(10);
  context.Want("sample_throughput");
  const v1::Measurement measurement = MeasureAll(context, {});
  EXPECT_EQ(FindUnmeasured(measurement, "sample_throughput")->reason(),
            v1::UNMEASURED_REASON_CONTEXT_MISSING);
}

// A run that was timed is worth more than what the client remembers.
TEST(Measure, AMeasuredStepTimeCountsBeforeAGivenOne) {
  ResultFixture fixture;
  fixture.AddMeasured("step_time", 5e6, StepScope(), "solward-timer", "timing", "wall");
  const v1::Measurement measurement = MeasureAll(StepTime(10), {fixture.Finish()});
  EXPECT_DOUBLE_EQ(RunShare(measurement, "throughput"), 200);
  EXPECT_NE(FindFinding(measurement, "tools_disagree"), nullptr);
}

// --- several tools -------------------------------------------------------------------

// A step of launch takes 22.7 ms under nsys and 44.6 ms under torch.profiler,
// busy 2.342 ms under both.
TEST(Measure, TwoProfilersThatSlowTheHostDifferentlyAreSaidToDoSo) {
  const v1::Measurement measurement =
      MeasureAll({}, {TimelineOf("h200/launch.torch.json.gz", "torch.profiler"),
                      TimelineOf("h200/launch.nsys.sqlite.gz", "nsys")});
  const v1::Finding* finding = FindFinding(measurement, "profilers_slow_host_differently");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->words().at("first_tool"), "nsys");
  const auto value = [&](const char* name) {
    return ValueOf(finding->metric_keys().at(name), measurement, {});
  };
  EXPECT_NEAR(value("first_idle"), 90, 1);
  EXPECT_NEAR(value("second_idle"), 95, 1);
  EXPECT_NEAR(value("second_step") / value("first_step"), 1.97, 0.01);
  EXPECT_EQ(FindFinding(measurement, "tools_disagree"), nullptr);  // busy time agrees
}

TEST(Measure, TheMoreTrustedToolsMetricIsTheWantedOneAndTheOtherIsKept) {
  const v1::Measurement measurement =
      MeasureAll(UnderstandingFixture().Want("gpu_busy_share"),
                 {TimelineOf("h200/launch.torch.json.gz", "torch.profiler"),
                  TimelineOf("h200/launch.nsys.sqlite.gz", "nsys")});
  ASSERT_EQ(measurement.wanted_keys_size(), 1);
  EXPECT_NEAR(ValueOf(measurement.wanted_keys(0), measurement, {}), 10.4, 0.01);
  int kept = 0;
  for (const v1::Metric& metric : measurement.metrics()) kept += metric.id() == "gpu_busy_share";
  EXPECT_EQ(kept, 2);
}

TEST(Measure, RanksAreNotTakenForTwoViewsOfOneGpu) {
  ResultFixture fixture;
  fixture.AddTimeline("nsys", ReadShares("h200/comm.nsys.sqlite.gz", 0), {.kernels = 168}, 0);
  fixture.AddTimeline("nsys", ReadShares("h200/comm.nsys.sqlite.gz", 1), {.kernels = 168}, 1);
  const v1::Measurement measurement =
      MeasureAll(UnderstandingFixture().Want("exposed_communication_share"), {fixture.Finish()});
  EXPECT_EQ(measurement.wanted_keys_size(), 2);
}

TEST(Measure, CountersThatDisagreeBeyondTheToleranceAreAFinding) {
  const auto counters = [](const std::string& artifact, double time_us) {
    ResultFixture fixture;
    fixture.AddCounters(artifact,
                        {{.kernel = "f(int)", .time_us = time_us, .compute = 50, .memory = 20}});
    return fixture.Finish();
  };
  EXPECT_EQ(FindFinding(MeasureAll({}, {counters("a", 100), counters("b", 104)}), "tools_disagree"),
            nullptr);
  const v1::Measurement measurement = MeasureAll({}, {counters("a", 100), counters("b", 110)});
  const v1::Finding* finding = FindFinding(measurement, "tools_disagree");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->words().at("metric"), "kernel_time");
  EXPECT_EQ(finding->words().at("second_tool"), "b");  // one tool: the captures are named
  EXPECT_EQ(finding->location().kernel(), "f(int)");
}

// dram_throughput of fma_loop: 0.000239 % on the raw page, 0.00 on the details page.
TEST(Measure, RoundingOfAPrintedPercentageIsNoDisagreement) {
  const auto counters = [](const std::string& artifact, double dram) {
    ResultFixture fixture;
    fixture.AddCounters(artifact, {{.kernel = "f", .time_us = 100, .dram = dram}});
    return fixture.Finish();
  };
  EXPECT_EQ(
      FindFinding(MeasureAll({}, {counters("a", 0.000239), counters("b", 0)}), "tools_disagree"),
      nullptr);
  EXPECT_NE(FindFinding(MeasureAll({}, {counters("a", 0.3), counters("b", 0)}), "tools_disagree"),
            nullptr);
}

// One call at the end of the region, over ten steps and over four.
TEST(Measure, ACallAtTheBorderOfTheRegionIsNoDisagreement) {
  const v1::Measurement measurement = MeasureAll(
      {},
      {TimelineOf("h200/comm.rank0.torch.json.gz", "torch.profiler", {.synchronizations = 0.25}),
       TimelineOf("h200/comm.nsys.sqlite.gz", "nsys", {.synchronizations = 0.1})});
  EXPECT_EQ(FindFinding(measurement, "tools_disagree"), nullptr);
}

TEST(Measure, OfSeveralKernelsThatDisagreeTheLongestIsNamed) {
  const auto counters = [](const std::string& artifact, double factor) {
    ResultFixture fixture;
    fixture.AddCounters(artifact, {{.kernel = "tiny", .time_us = 1 * factor * factor},
                                   {.kernel = "long", .time_us = 100 * factor}});
    return fixture.Finish();
  };
  const v1::Measurement measurement = MeasureAll({}, {counters("a", 1), counters("b", 1.2)});
  ASSERT_NE(FindFinding(measurement, "tools_disagree"), nullptr);
  EXPECT_EQ(FindFinding(measurement, "tools_disagree")->location().kernel(), "long");
}

TEST(Measure, TotalsOfRunsOfDifferentLengthDoNotDisagree) {
  const auto counters = [](const std::string& artifact, double launches) {
    ResultFixture fixture;
    fixture.AddCounters(artifact, {{.kernel = "f", .time_us = 100, .launches = launches}});
    return fixture.Finish();
  };
  EXPECT_EQ(FindFinding(MeasureAll({}, {counters("a", 1), counters("b", 9)}), "tools_disagree"),
            nullptr);
}

// --- what is wanted and what is not there ----------------------------------------------

TEST(Measure, WantedMetricsComeInTheOrderOfTheRequest) {
  ResultFixture fixture;
  fixture.AddCounters("c", {{.kernel = "short", .time_us = 1, .compute = 10, .memory = 20},
                            {.kernel = "long", .time_us = 9, .compute = 30, .memory = 40}});
  const v1::Measurement measurement =
      MeasureAll(UnderstandingFixture().Want("memory_throughput").Want("compute_throughput"),
                 {fixture.Finish()});
  std::vector<double> values;
  for (const std::string& key : measurement.wanted_keys()) {
    values.push_back(ValueOf(key, measurement, {}));
  }
  EXPECT_THAT(values, ElementsAre(40, 20, 30, 10));  // the longer kernel first
}

TEST(Measure, AGroupStandsForItsMetrics) {
  ResultFixture fixture;
  fixture.AddCounters("c", {{.kernel = "k", .time_us = 1, .compute = 30, .memory = 40, .dram = 5}});
  const v1::Measurement measurement =
      MeasureAll(UnderstandingFixture().Want("sol_all"), {fixture.Finish()});
  std::vector<double> values;
  for (const std::string& key : measurement.wanted_keys()) {
    values.push_back(ValueOf(key, measurement, {}));
  }
  EXPECT_THAT(values, ElementsAre(40, 30, 40, 5));  // sol, compute, memory, DRAM
}

TEST(Measure, OfManyStallReasonsTheLargestAreListed) {
  ResultFixture fixture;
  std::map<std::string, double> stalls;
  for (int i = 1; i <= 9; ++i) stalls["reason" + std::to_string(i)] = i;
  fixture.AddCounters("c", {{.kernel = "k", .time_us = 1, .stalls = stalls}});
  const v1::Measurement measurement =
      MeasureAll(UnderstandingFixture().Want("warp_stalls"), {fixture.Finish()});
  std::vector<double> values;
  for (const std::string& key : measurement.wanted_keys()) {
    values.push_back(ValueOf(key, measurement, {}));
  }
  EXPECT_THAT(values, ElementsAre(9, 8, 7, 6, 5));
}

TEST(Measure, PartsOfAMetricDoNotStandBesideTheWhole) {
  ResultFixture fixture;
  fixture.AddCounters("c", {{.kernel = "k", .time_us = 1, .bandwidth = 3e12}});
  fixture.AddMeasured("dram_bandwidth", 2e12, KernelScope("k|read", 0), "ncu", "c", "read");
  const v1::Measurement measurement =
      MeasureAll(UnderstandingFixture().Want("dram_bandwidth"), {fixture.Finish()});
  ASSERT_EQ(measurement.wanted_keys_size(), 1);
  EXPECT_EQ(ValueOf(measurement.wanted_keys(0), measurement, {}), 3e12);
}

TEST(Measure, WhatOneCaptureLacksAndAnotherHasIsNotUnmeasured) {
  v1::DelegationResult timeline = TimelineOf("h200/launch.nsys.sqlite.gz", "nsys");
  for (const char* id : {"compute_throughput", "achieved_occupancy", "achieved_occupancy"}) {
    v1::UnmeasuredMetric& unmeasured = *timeline.add_unmeasured();
    unmeasured.set_id(id);
    unmeasured.mutable_scope()->set_kind(v1::SCOPE_KIND_KERNEL);
    unmeasured.set_reason(v1::UNMEASURED_REASON_CAPTURE_KIND);
  }
  ResultFixture counters;
  counters.AddCounters("c", {{.kernel = "k", .time_us = 1, .compute = 30, .memory = 40}});
  const v1::Measurement measurement =
      MeasureAll(UnderstandingFixture().Want("compute_throughput").Want("achieved_occupancy"),
                 {timeline, counters.Finish()});
  ASSERT_EQ(measurement.unmeasured_size(), 1);
  EXPECT_EQ(measurement.unmeasured(0).id(), "achieved_occupancy");
}

TEST(Measure, AWantedMetricThatNobodyExplainsIsExplainedHere) {
  const v1::Measurement measurement =
      MeasureAll(UnderstandingFixture().Want("achieved_occupancy"),
                 {TimelineOf("h200/launch.nsys.sqlite.gz", "nsys")});
  const v1::UnmeasuredMetric* unmeasured = FindUnmeasured(measurement, "achieved_occupancy");
  ASSERT_NE(unmeasured, nullptr);
  EXPECT_EQ(unmeasured->reason(), v1::UNMEASURED_REASON_CAPTURE_KIND);
  EXPECT_THAT(unmeasured->remedy(), HasSubstr("counters"));
}

TEST(Measure, IsTheSameTwice) {
  const auto once = [] {
    return MeasureAll(StepTime(10), {TimelineOf("h200/launch.torch.json.gz", "torch.profiler"),
                                     TimelineOf("h200/launch.nsys.sqlite.gz", "nsys")});
  };
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(once(), once()));
}

}  // namespace
}  // namespace solward::workflow
