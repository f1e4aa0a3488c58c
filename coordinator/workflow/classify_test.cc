#include "coordinator/workflow/classify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/status_matchers.h"
#include "coordinator/workflow/evidence_fixture.h"
#include "coordinator/workflow/measure.h"

namespace solward::workflow {
namespace {

using ::solward::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace ::solward::workflow::testing;  // NOLINT: the fixture's builders

struct Judged {
  v1::Measurement measurement;
  v1::Classification classification;

  double Value(const std::string& key) const { return ValueOf(key, measurement, classification); }
  const v1::RankedClass& Rank(int place) const { return classification.ranking(place); }
};

Judged Judge(std::vector<v1::DelegationResult> results,
             const UnderstandingFixture& understanding = {}) {
  const Knowledge knowledge = BuiltInKnowledge();
  auto measurement = Measure(understanding.Done(), EvidenceOf(std::move(results)), knowledge);
  if (!measurement.ok()) throw std::runtime_error(std::string(measurement.status().message()));
  auto classification = Classify(*measurement, knowledge);
  if (!classification.ok()) {
    throw std::runtime_error(std::string(classification.status().message()));
  }
  return {*std::move(measurement), *std::move(classification)};
}

UnderstandingFixture StepTime(double ms) {
  return UnderstandingFixture().Give("step_time", ms * kMs, v1::SCOPE_KIND_STEP);
}

v1::DelegationResult TimelineOf(const std::string& file, const std::string& tool,
                                const HostCounts& counts) {
  ResultFixture fixture;
  fixture.AddTimeline(tool, ReadShares(file), counts);
  return fixture.Finish();
}

// --- timelines without a step time --------------------------------------------

// 2,045 kernels a step, each by its own call (counted in the capture): at least
// 4.09 ms of launching against the 2.342 / (1 - 0.2) = 2.93 ms that the floor asks.
TEST(Classify, LaunchOverheadHoldsWithoutAStepTimeWhenLaunchCallsAloneReachTheFloor) {
  const Judged judged = Judge(
      {TimelineOf("h200/launch.nsys.sqlite.gz", "nsys", {.kernels = 2045, .launch_calls = 2045})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD);
  EXPECT_NEAR(judged.Value(judged.Rank(0).share_key()), 86.7, 0.1);
  EXPECT_NEAR(judged.Value(judged.Rank(0).recoverable_key()), 86.7, 0.1);
  EXPECT_FALSE(judged.classification.rescaled());
  EXPECT_TRUE(judged.classification.kernels_unrated());
  EXPECT_EQ(judged.classification.confidence(), v1::CONFIDENCE_MEDIUM);
  EXPECT_THAT(ReasonsOf(judged.classification),
              ElementsAre("confidence.dilation_unmeasured", "confidence.kernels_unrated"));
  const v1::Metric& floor_time =
      OneMetric(judged.classification.metrics(), "host_floor_time", v1::SCOPE_KIND_STEP);
  EXPECT_DOUBLE_EQ(floor_time.value(), 4.09 * kMs);
  EXPECT_THAT(judged.Rank(0).evidence_keys(), Contains(floor_time.key()));
}

TEST(Classify, LaunchOverheadByTheOtherProfilerToo) {
  const Judged judged = Judge({TimelineOf("h200/launch.torch.json.gz", "torch.profiler",
                                          {.kernels = 2045, .launch_calls = 2045})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD);
}

// 302 kernels and 200 memsets a step: 0.6 ms of launching, the floor asks 6.2 ms.
TEST(Classify, RnnWithoutAStepTimeIsUndeterminedAndFlipsAtSixMilliseconds) {
  for (const auto& [file, tool] :
       {std::pair("ground_truth/rnn_small.nsys.sqlite.gz", "nsys"),
        std::pair("ground_truth/rnn_small.torch.json.gz", "torch.profiler")}) {
    const Judged judged = Judge({TimelineOf(file, tool, {.kernels = 302, .launch_calls = 302})});
    EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION);
    EXPECT_NEAR(judged.Value(judged.classification.flip_step_time_key()), 6.2 * kMs, 0.05 * kMs);
    EXPECT_EQ(judged.Rank(0).recoverable_key(), "");
    EXPECT_EQ(judged.Rank(1).bottleneck_class(), v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD);
    EXPECT_EQ(judged.classification.confidence(), v1::CONFIDENCE_LOW);
    ASSERT_GE(judged.classification.missing_size(), 1);
    EXPECT_THAT(judged.classification.missing(0).metric_ids(), ElementsAre("step_time"));
  }
}

// 40 synchronizations a step are 0.2 ms at least: 16 % of busy time and that.
TEST(Classify, SyncGemmWithoutAStepTimeIsUndeterminedAndFlipsAt1Point3Milliseconds) {
  const Judged judged =
      Judge({TimelineOf("ground_truth/sync_gemm.nsys.sqlite.gz", "nsys",
                        {.kernels = 40, .launch_calls = 40, .synchronizations = 40})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION);
  EXPECT_NEAR(judged.Value(judged.classification.flip_step_time_key()), 1.3 * kMs, 0.01 * kMs);
  EXPECT_EQ(judged.Rank(1).bottleneck_class(), v1::BOTTLENECK_CLASS_SYNC_BOUND);
}

// As many synchronizations as would take 0.3 ms: 22 % of 1.038 + 0.3 ms.
TEST(Classify, SyncBoundHoldsWhenSynchronizationsAloneReachTheFloor) {
  const Judged judged =
      Judge({TimelineOf("ground_truth/sync_gemm.nsys.sqlite.gz", "nsys",
                        {.kernels = 40, .launch_calls = 40, .synchronizations = 60})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_SYNC_BOUND);
}

// The loader's 58 ms a step are stretches of more than 1 ms.
TEST(Classify, InputIsHostBoundByItsLongStretches) {
  for (const auto& [file, tool] : {std::pair("h200/input.nsys.sqlite.gz", "nsys"),
                                   std::pair("h200/input.torch.json.gz", "torch.profiler")}) {
    const Judged judged = Judge({TimelineOf(
        file, tool,
        {.kernels = 17, .launch_calls = 17, .synchronizations = 1, .long_stretches_ms = 50})});
    EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_HOST_BOUND);
    EXPECT_NEAR(judged.Value(judged.Rank(0).share_key()), 84, 1);
  }
}

TEST(Classify, HostIdleOfShortStretchesIsUndetermined) {
  const Judged judged =
      Judge({TimelineOf("h200/input.nsys.sqlite.gz", "nsys",
                        {.kernels = 17, .launch_calls = 17, .long_stretches_ms = 1})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION);
}

TEST(Classify, CommunicationOnBothRanksIsOneVerdictWithBothAsEvidence) {
  ResultFixture fixture;
  fixture.AddTimeline("nsys", ReadShares("h200/comm.nsys.sqlite.gz", 0), {.kernels = 168});
  fixture.AddTimeline("nsys", ReadShares("h200/comm.nsys.sqlite.gz", 1), {.kernels = 168});
  const Judged judged = Judge({fixture.Finish()});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_COMMUNICATION_BOUND);
  EXPECT_EQ(judged.classification.device(), 1);  // 34.3 % against 34.2 %
  EXPECT_NEAR(judged.Value(judged.Rank(0).share_key()), 34.3, 0.05);
  EXPECT_TRUE(judged.classification.kernels_unrated());
  bool names_other_rank = false;
  for (const std::string& key : judged.Rank(0).evidence_keys()) {
    names_other_rank = names_other_rank || std::abs(judged.Value(key) - 34.2) < 0.01;
  }
  EXPECT_TRUE(names_other_rank);
}

TEST(Classify, OneGraphLaunchAStepIsNoLaunchOverhead) {
  const Judged judged = Judge(
      {TimelineOf("h200/graph.nsys.sqlite.gz", "nsys", {.kernels = 2045, .launch_calls = 1})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS);
  EXPECT_NEAR(judged.Value(judged.Rank(0).share_key()), 93.4, 0.1);
  EXPECT_EQ(judged.classification.ranking_size(), 1);  // queued idle is no overhead
  ASSERT_EQ(judged.classification.missing_size(), 1);
  EXPECT_THAT(
      judged.classification.missing(0).metric_ids(),
      ElementsAre("compute_throughput", "memory_throughput", "achieved_occupancy", "warp_stall"));
}

TEST(Classify, MissingCountersNameTheLongestKernels) {
  ResultFixture fixture;
  const std::string artifact =
      fixture.AddTimeline("nsys", ReadShares("h200/graph.nsys.sqlite.gz"), {.kernels = 2045});
  fixture.AddTimelineKernels(artifact, "nsys", 0, -1, {{"short", 1}, {"long", 9}});
  const Judged judged = Judge({fixture.Finish()});
  EXPECT_THAT(judged.classification.missing(0).kernels(), ElementsAre("long", "short"));
}

TEST(Classify, ManySynchronizationsBehindLaunchOverheadStaySecond) {
  const Judged judged =
      Judge({TimelineOf("h200/sync.nsys.sqlite.gz", "nsys",
                        {.kernels = 2075, .launch_calls = 2075, .synchronizations = 30})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD);
}

TEST(Classify, ATimelineWithoutStepsIsJudgedByItsWindow) {
  const Judged judged = Judge({TimelineOf("h200/axpy.nsys.sqlite.gz", "nsys", {.kernels = 5})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS);
}

// --- with the step time of plain.tsv -------------------------------------------

struct GroundTruth {
  std::string workload;
  double plain_ms;
  v1::BottleneckClass verdict;
  double share;  // of the unprofiled step, by shares.tsv
};

class ClassifyGroundTruth : public ::testing::TestWithParam<
                                std::tuple<GroundTruth, std::pair<const char*, const char*>>> {};

TEST_P(ClassifyGroundTruth, IsFoundWithThePlainStepTime) {
  const auto& [truth, capture] = GetParam();
  const std::string file = "ground_truth/" + truth.workload + capture.first;
  const Judged judged =
      Judge({TimelineOf(file, capture.second,
                        {.kernels = 40, .launch_calls = 40, .synchronizations = 40})},
            StepTime(truth.plain_ms));
  EXPECT_EQ(judged.classification.primary(), truth.verdict);
  EXPECT_TRUE(judged.classification.rescaled());
  EXPECT_NEAR(judged.Value(judged.Rank(0).share_key()), truth.share, 1);
  EXPECT_EQ(judged.classification.flip_step_time_key(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, ClassifyGroundTruth,
    ::testing::Combine(
        ::testing::Values(
            GroundTruth{"sync_gemm", 1.972, v1::BOTTLENECK_CLASS_SYNC_BOUND, 39},
            GroundTruth{"ew_chain", 1.286, v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS, 98},
            GroundTruth{"h2d", 31.209, v1::BOTTLENECK_CLASS_TRANSFER_BOUND, 91.5},
            GroundTruth{"rnn_small", 5.225, v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS, 94.5}),
        ::testing::Values(std::pair(".nsys.sqlite.gz", "nsys"),
                          std::pair(".torch.json.gz", "torch.profiler"))));

TEST(Classify, ACopyThatTheProfilerItselfStretchedLowersTheConfidence) {
  const Judged judged = Judge(
      {TimelineOf("ground_truth/h2d.nsys.sqlite.gz", "nsys", {.kernels = 2})}, StepTime(31.209));
  EXPECT_EQ(judged.classification.confidence(), v1::CONFIDENCE_MEDIUM);
  EXPECT_THAT(ReasonsOf(judged.classification), Contains("confidence.busy_dilated"));
  EXPECT_THAT(ReasonsOf(judged.classification), Not(Contains("confidence.dilation_unmeasured")));
}

// --- counters -------------------------------------------------------------------

// bmm.ncu.raw.csv, launch 1.
const Counters kBmm = {.kernel = "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT",
                       .time_us = 100.544,
                       .launches = 3,
                       .compute = 84.301,
                       .memory = 66.273,
                       .dram = 49.654};
// axpy.ncu.raw.csv.
const Counters kAxpy = {.kernel = "axpy(float, const float *, float *, unsigned long)",
                        .time_us = 468.288,
                        .compute = 21.446,
                        .memory = 70.689,
                        .dram = 70.689};
const Counters kFmaLoop = {.kernel = "fma_loop(float *, int)",
                           .time_us = 377.792,
                           .compute = 93.705,
                           .memory = 0.072,
                           .dram = 0.0002};
// rnn_small.ncu.raw.csv, means by eye; stalls are made up.
const Counters kRnnGemm = {
    .kernel =
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x64x8_stage3_warpsize1x2x1_ffma_"
        "aligna4_alignc4_execute_kernel__5x_cublas",
    .time_us = 23.75,
    .launches = 8,
    .compute = 3.99,
    .memory = 5.69,
    .stalls = {{"barrier", 12}, {"long_scoreboard", 55}}};
const Counters kLstmCell = {.kernel =
                                "void at::<unnamed>::kernel::lstm_cell_forward<float, float, int, "
                                "1>(cuda::TensorInfo<T1, T3>, T3, T3)",
                            .time_us = 3.456,
                            .launches = 3,
                            .compute = 0.5,
                            .memory = 0.72};

v1::DelegationResult CountersOf(const std::vector<Counters>& kernels) {
  ResultFixture fixture;
  fixture.AddCounters("counters", kernels);
  return fixture.Finish();
}

TEST(Classify, BatchedGemmIsComputeBoundAndNearItsRoof) {
  const Judged judged = Judge({CountersOf({kBmm})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_COMPUTE_BOUND);
  EXPECT_NEAR(judged.Value(judged.Rank(0).share_key()), 100, 1e-9);
  EXPECT_NEAR(judged.Value(judged.Rank(0).recoverable_key()), 100 - 84.301, 1e-6);
  EXPECT_EQ(judged.classification.confidence(), v1::CONFIDENCE_HIGH);
  EXPECT_THAT(ReasonsOf(judged.classification), IsEmpty());
  ASSERT_EQ(judged.classification.kernel_limits_size(), 1);
  EXPECT_EQ(judged.classification.kernel_limits(0).second_limit(),
            v1::BOTTLENECK_CLASS_UNSPECIFIED);  // 18 points apart
  EXPECT_FALSE(judged.classification.kernels_unrated());
}

TEST(Classify, TwoKernelsOfTwoLimitsAreWeighedByTheirTime) {
  const Judged judged = Judge({CountersOf({kAxpy, kFmaLoop})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_MEMORY_BOUND);
  ASSERT_EQ(judged.classification.kernel_limits_size(), 2);
  const v1::KernelLimit& first = judged.classification.kernel_limits(0);
  EXPECT_EQ(first.kernel(), kAxpy.kernel);
  EXPECT_EQ(first.limit(), v1::BOTTLENECK_CLASS_MEMORY_BOUND);
  // 468.288 of 468.288 + 377.792 us.
  EXPECT_NEAR(judged.Value(first.time_share_key()), 55.348, 0.001);
  EXPECT_EQ(judged.classification.kernel_limits(1).limit(), v1::BOTTLENECK_CLASS_COMPUTE_BOUND);
  // 55.348 * 0.29311 and 44.652 * 0.06295.
  EXPECT_NEAR(judged.Value(judged.Rank(0).recoverable_key()), 16.223, 0.001);
  EXPECT_NEAR(judged.Value(judged.Rank(1).recoverable_key()), 2.811, 0.001);
  EXPECT_NEAR(judged.Value(judged.classification.margin_key()), 13.412, 0.002);
  EXPECT_FALSE(judged.classification.within_margin());
}

// ew_chain.ncu.raw.csv: every kernel at 85 % of memory or more, compute below 36 %.
TEST(Classify, ElementwiseChainIsMemoryBound) {
  const Judged judged = Judge({CountersOf({{.kernel = "void f<4, Mul<float>>(int)",
                                            .time_us = 124.992,
                                            .compute = 6.59,
                                            .memory = 85.24},
                                           {.kernel = "void f<4, Sigmoid>(int)",
                                            .time_us = 125.664,
                                            .compute = 35.84,
                                            .memory = 84.84}})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_MEMORY_BOUND);
  EXPECT_EQ(judged.classification.confidence(), v1::CONFIDENCE_HIGH);
}

TEST(Classify, RnnIsLatencyBoundWithItsDominatingStall) {
  const Judged judged = Judge({CountersOf({kRnnGemm, kLstmCell})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_LATENCY_BOUND);
  const v1::KernelLimit& gemm = judged.classification.kernel_limits(0);
  EXPECT_EQ(gemm.kernel(), kRnnGemm.kernel);
  EXPECT_EQ(judged.Value(gemm.stall_key()), 55);
  EXPECT_EQ(judged.Value(gemm.utilization_key()), 5.69);
}

TEST(Classify, CountersWithoutThroughputsAreUndetermined) {
  ResultFixture fixture;
  v1::KernelSummary& kernel = *fixture.result().add_kernels();
  kernel.set_name("k");
  kernel.set_rank(-1);
  kernel.set_artifact_id("counters");
  kernel.add_metric_keys(fixture.AddMeasured("achieved_occupancy", 50, KernelScope("k", 0), "ncu",
                                             "counters", "warps"));
  const Judged judged = Judge({fixture.Finish()});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS);
  EXPECT_THAT(judged.classification.missing(0).kernels(), ElementsAre("k"));
}

// --- timeline and counters together ------------------------------------------

// Kernel times of rnn_small.nsys.sqlite.gz; nsys and ncu print other names.
TEST(Classify, CountersRateTheKernelsOfATimeline) {
  ResultFixture fixture;
  const std::string artifact =
      fixture.AddTimeline("nsys", ReadShares("ground_truth/rnn_small.nsys.sqlite.gz"),
                          {.kernels = 302, .launch_calls = 302});
  fixture.AddTimelineKernels(
      artifact, "nsys", 0, -1,
      {{kRnnGemm.kernel, 45.426, 2000},
       {"void at::native::<unnamed>::kernel::lstm_cell_forward<float, float, int, "
        "(int)1>(at::cuda::detail::TensorInfo<T1, T3>, T3, T3)",
        2.012, 1000},
       {"void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, "
        "std::array<char *, (unsigned long)1>>(int, T2, T3)",
        0.0134, 20}});
  fixture.AddCounters("counters", {kRnnGemm, kLstmCell});
  const Judged judged = Judge({fixture.Finish()}, StepTime(5.225));
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_LATENCY_BOUND);
  EXPECT_FALSE(judged.classification.kernels_unrated());
  EXPECT_EQ(judged.classification.kernel_limits_size(), 2);
  // 94.3 % of the step times 99.97 % of kernel time.
  EXPECT_NEAR(judged.Value(judged.Rank(0).share_key()), 94.3, 0.3);
  // 94.3 * (1 - 0.0569) for the GEMM and the rest nearly whole.
  EXPECT_NEAR(judged.Value(judged.Rank(0).recoverable_key()), 89.2, 0.4);
  EXPECT_EQ(judged.classification.confidence(), v1::CONFIDENCE_HIGH);
}

TEST(Classify, CountersOfASmallPartOfKernelTimeDoNotDecide) {
  ResultFixture fixture;
  const std::string artifact =
      fixture.AddTimeline("nsys", ReadShares("h200/graph.nsys.sqlite.gz"), {.kernels = 2});
  fixture.AddTimelineKernels(artifact, "nsys", 0, -1, {{"big", 70}, {"small", 30}});
  fixture.AddCounters("counters",
                      {{.kernel = "small", .time_us = 10, .compute = 90, .memory = 10}});
  const Judged judged = Judge({fixture.Finish()});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS);
  EXPECT_THAT(judged.classification.missing(0).kernels(), ElementsAre("big"));
  // 93.4 % of the window, seven tenths of it.
  EXPECT_NEAR(judged.Value(judged.Rank(0).share_key()), 65.4, 0.1);
}

// 34 % communication is recoverable whole; kernels at 10 % of their roof offer 58 %.
TEST(Classify, RatedKernelTimeThatOffersMoreComesBeforeAnOverhead) {
  ResultFixture fixture;
  const std::string artifact =
      fixture.AddTimeline("nsys", ReadShares("h200/comm.nsys.sqlite.gz"), {.kernels = 168});
  fixture.AddTimelineKernels(
      artifact, "nsys", 0, -1,
      {{"k", 60}, {"ncclDevKernel", 30, 1, v1::KERNEL_CATEGORY_COMMUNICATION}});
  fixture.AddCounters("counters", {{.kernel = "k", .time_us = 10, .compute = 10, .memory = 5}});
  const Judged judged = Judge({fixture.Finish()});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_LATENCY_BOUND);
  EXPECT_EQ(judged.Rank(1).bottleneck_class(), v1::BOTTLENECK_CLASS_COMMUNICATION_BOUND);
  EXPECT_NEAR(judged.Value(judged.Rank(0).recoverable_key()), 64.5 * 0.9, 0.1);
}

TEST(Classify, AnOverheadComesBeforeKernelsNearTheirRoof) {
  ResultFixture fixture;
  const std::string artifact =
      fixture.AddTimeline("nsys", ReadShares("h200/comm.nsys.sqlite.gz"), {.kernels = 168});
  fixture.AddTimelineKernels(artifact, "nsys", 0, -1, {{"k", 60}});
  fixture.AddCounters("counters", {{.kernel = "k", .time_us = 10, .compute = 90, .memory = 5}});
  const Judged judged = Judge({fixture.Finish()});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_COMMUNICATION_BOUND);
  EXPECT_FALSE(judged.classification.kernels_unrated());
  EXPECT_FALSE(judged.classification.within_margin());
}

// 34.2 % communication against 64.5 * 0.55 = 35.5 % of kernel time.
TEST(Classify, TwoClassesWithinTheMarginAreBothNamed) {
  ResultFixture fixture;
  const std::string artifact =
      fixture.AddTimeline("nsys", ReadShares("h200/comm.nsys.sqlite.gz"), {.kernels = 168});
  fixture.AddTimelineKernels(artifact, "nsys", 0, -1, {{"k", 60}});
  fixture.AddCounters("counters", {{.kernel = "k", .time_us = 10, .compute = 45, .memory = 5}});
  const Judged judged = Judge({fixture.Finish()});
  EXPECT_TRUE(judged.classification.within_margin());
  EXPECT_NEAR(judged.Value(judged.classification.margin_key()), 1.3, 0.1);
  EXPECT_THAT(ReasonsOf(judged.classification), Contains("confidence.within_margin"));
}

// --- several captures and lanes -------------------------------------------------

TEST(Classify, TheMoreTrustedToolJudgesAndTheOtherMustAgree) {
  const Judged judged = Judge(
      {TimelineOf("h200/launch.torch.json.gz", "torch.profiler",
                  {.kernels = 2045, .launch_calls = 2045}),
       TimelineOf("h200/launch.nsys.sqlite.gz", "nsys", {.kernels = 2045, .launch_calls = 2045})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD);
  EXPECT_NEAR(judged.Value(judged.Rank(0).share_key()), 86.7, 0.1);  // nsys; torch has 88.8
  EXPECT_THAT(ReasonsOf(judged.classification), Not(Contains("confidence.tools_disagree")));
}

TEST(Classify, AnotherVerdictByAnotherToolLowersTheConfidence) {
  SharesRow busy = ReadShares("h200/graph.torch.json.gz");
  const Judged judged = Judge(
      {TimelineOf("h200/launch.nsys.sqlite.gz", "nsys", {.kernels = 2045, .launch_calls = 2045}),
       TimelineOf(busy.file, "torch.profiler", {.kernels = 2045})});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD);
  EXPECT_THAT(ReasonsOf(judged.classification), Contains("confidence.tools_disagree"));
}

// A GPU that a process hardly uses reads idle and must not speak for it.
TEST(Classify, AProcessIsJudgedByItsBusiestGpu) {
  ResultFixture fixture;
  fixture.AddTimeline("nsys", ReadShares("h200/graph.nsys.sqlite.gz"), {.kernels = 2045});
  SharesRow idle = ReadShares("h200/launch.nsys.sqlite.gz");
  idle.file = "h200/graph.nsys.sqlite.gz";
  idle.device = 1;
  idle.window_ms = 50;
  fixture.AddTimeline("nsys", idle, {.kernels = 2045, .launch_calls = 2045});
  fixture.result().mutable_timelines(1)->set_process_id(fixture.result().timelines(0).process_id());
  EXPECT_EQ(Judge({fixture.Finish()}).classification.device(), 0);
}

// --- what must not pass -----------------------------------------------------------

TEST(Classify, NothingToClassifyFrom) {
  const Judged judged = Judge({v1::DelegationResult()});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_NO_EVIDENCE);
  EXPECT_EQ(judged.classification.ranking_size(), 0);
  EXPECT_EQ(judged.classification.confidence(), v1::CONFIDENCE_LOW);
  EXPECT_GE(judged.classification.missing_size(), 1);
}

TEST(Classify, SharesThatDoNotSumToOneHundredAreAnInternalError) {
  v1::DelegationResult result = TimelineOf("h200/graph.nsys.sqlite.gz", "nsys", {.kernels = 2045});
  for (v1::Metric& metric : *result.mutable_metrics()) {
    if (metric.id() == "kernel_time") metric.set_value(metric.value() * 1.01);
  }
  auto measurement = Measure(v1::Understanding(), EvidenceOf({result}), BuiltInKnowledge());
  ASSERT_TRUE(measurement.ok()) << measurement.status();
  EXPECT_THAT(Classify(*measurement, BuiltInKnowledge()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("sum to 100 %")));
}

TEST(Classify, KeysThatDoNotCountFromOneAreAnInternalError) {
  v1::Measurement measurement;
  v1::DelegationResult result = CountersOf({kBmm});
  *measurement.mutable_metrics() = result.metrics();
  measurement.mutable_metrics(0)->set_key("first");
  EXPECT_THAT(Classify(measurement, BuiltInKnowledge()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("keys")));
}

TEST(Classify, NewMetricsContinueTheKeysOfTheMeasurement) {
  const Judged judged = Judge({CountersOf({kBmm})});
  ASSERT_GT(judged.classification.metrics_size(), 0);
  EXPECT_EQ(judged.classification.metrics(0).key(),
            "m" + std::to_string(judged.measurement.metrics_size() + 1));
}

TEST(Classify, LostDataLowersTheConfidence) {
  ResultFixture fixture;
  fixture.AddCounters("counters", {kBmm});
  v1::ParseStatistic& lost = *fixture.result().add_parse_statistics();
  lost.set_name("launches_dropped");
  lost.set_severity(v1::PARSE_SEVERITY_DATA_LOSS);
  lost.set_count(1);
  const Judged judged = Judge({fixture.Finish()});
  EXPECT_EQ(judged.classification.confidence(), v1::CONFIDENCE_MEDIUM);
  EXPECT_THAT(ReasonsOf(judged.classification), ElementsAre("confidence.data_loss"));
}

// Idle of unknown cause is no overhead of any class, and said.
TEST(Classify, IdleWithoutAKnownCauseIsNamed) {
  v1::DelegationResult result =
      TimelineOf("h200/launch.nsys.sqlite.gz", "nsys", {.kernels = 2045, .launch_calls = 0});
  v1::Timeline& timeline = *result.mutable_timelines(0);
  for (v1::Metric& metric : *result.mutable_metrics()) {
    if (metric.id() != "idle_launch_time") continue;
    v1::Metric unattributed = metric;
    metric.set_value(0);
    unattributed.set_id("idle_unattributed_time");
    unattributed.set_key(metric.key() + "u");
    timeline.add_metric_keys(unattributed.key());
    *result.add_metrics() = unattributed;
    if (metric.scope().kind() == v1::SCOPE_KIND_STEP) break;
  }
  const Judged judged = Judge({result});
  EXPECT_EQ(judged.classification.primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS);
  EXPECT_THAT(ReasonsOf(judged.classification), Contains("confidence.idle_unattributed"));
}

}  // namespace
}  // namespace solward::workflow
