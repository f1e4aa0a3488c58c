// MFU and what belongs to it, through stage Measure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status_matchers.h"
#include "coordinator/workflow/evidence_fixture.h"
#include "coordinator/workflow/measure.h"

namespace solward::workflow {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace ::solward::workflow::testing;  // NOLINT: the fixture's builders

// 2 * 32 * 512 * 1024 * 2048.
constexpr double kBmmFlops = 68'719'476'736;
constexpr char kBmm[] = "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT";

// Means of bmm.ncu.raw.csv: duration (100.352 + 100.544 + 100.320) / 3 us, clock
// (1.511371 + 1.499528 + 1.499710) / 3 GHz.
Counters Bmm() {
  return {.kernel = kBmm,
          .time_us = 100.405333,
          .launches = 3,
          .compute = 84.194,
          .memory = 66.203,
          .dram = 49.640,
          .clock_ghz = 1.503536,
          .bandwidth = 2.39e12};
}

UnderstandingFixture BmmContext() {
  return UnderstandingFixture()
      .Want("mfu")
      .Give("flops_per_call", kBmmFlops, v1::SCOPE_KIND_KERNEL)
      .Dtype(v1::DTYPE_FP16);
}

v1::DelegationResult BmmResult() {
  ResultFixture fixture;
  fixture.AddCounters("bmm", {Bmm()});
  fixture.AddH200("bmm");
  return fixture.Finish();
}

v1::Measurement MeasureAll(const UnderstandingFixture& understanding,
                           std::vector<v1::DelegationResult> results) {
  auto measurement =
      Measure(understanding.Done(), EvidenceOf(std::move(results)), BuiltInKnowledge());
  if (!measurement.ok()) throw std::runtime_error(std::string(measurement.status().message()));
  return *std::move(measurement);
}

const v1::Metric& Kernel(const v1::Measurement& measurement, const std::string& id) {
  return OneMetric(measurement.metrics(), id, v1::SCOPE_KIND_KERNEL);
}

// 68.72 GFLOP / 100.405 us = 684.42 TFLOP/s of 989.4.
TEST(Mfu, OfTheBatchedGemmIs69Percent) {
  const v1::Measurement measurement = MeasureAll(BmmContext(), {BmmResult()});
  EXPECT_NEAR(Kernel(measurement, "mfu").value(), 69.175, 0.001);
  EXPECT_NEAR(Kernel(measurement, "kernel_flops").value(), 684.42e12, 0.01e12);
  EXPECT_EQ(Kernel(measurement, "mfu").scope().name(), kBmm);
  ASSERT_EQ(measurement.wanted_keys_size(), 1);
  EXPECT_EQ(measurement.wanted_keys(0), Kernel(measurement, "mfu").key());
  EXPECT_THAT(measurement.unmeasured(), IsEmpty());
}

TEST(Mfu, ThePeakIsAReferenceWithItsRowAndConfidence) {
  const v1::Measurement measurement = MeasureAll(BmmContext(), {BmmResult()});
  const v1::Metric& peak = OneMetric(measurement.metrics(), "peak_flops", v1::SCOPE_KIND_DEVICE);
  EXPECT_EQ(peak.value(), 989.4e12);
  const v1::Reference& reference = peak.provenance().reference();
  EXPECT_EQ(reference.table(), "gpu_peaks");
  EXPECT_EQ(reference.row(), "H200-SXM");
  EXPECT_EQ(reference.column(), "fp16_tc");
  EXPECT_EQ(reference.confidence(), "A");
}

// The clock is the other factor: 1.5035 of 1.83 GHz.
TEST(Mfu, ComesWithTheClockAgainstThePrintedPeaks) {
  const v1::Measurement measurement = MeasureAll(BmmContext(), {BmmResult()});
  EXPECT_NEAR(Kernel(measurement, "clock_share").value(), 82.160, 0.001);
  EXPECT_EQ(OneMetric(measurement.metrics(), "peak_clock", v1::SCOPE_KIND_DEVICE).value(), 1.83e9);
}

// 2.39 TB/s * 100.405 us = 239.97 MB; 68.72 GFLOP / that = 286.4 FLOP/byte; the
// ridge of the H200 lies at 989.4 / 4.8 = 206, so the compute peak is attainable.
TEST(Mfu, ComesWithTheRoofline) {
  const v1::Measurement measurement = MeasureAll(BmmContext(), {BmmResult()});
  EXPECT_NEAR(Kernel(measurement, "dram_bytes").value(), 239.97e6, 0.01e6);
  EXPECT_NEAR(Kernel(measurement, "arithmetic_intensity").value(), 286.4, 0.1);
  EXPECT_EQ(Kernel(measurement, "attainable_flops").value(), 989.4e12);
  EXPECT_NEAR(Kernel(measurement, "dram_bandwidth_share").value(), 49.79, 0.01);
}

TEST(Mfu, AMemoryBoundKernelsAttainableIsIntensityTimesBandwidth) {
  ResultFixture fixture;
  Counters kernel = Bmm();
  kernel.bandwidth = 4e12;
  fixture.AddCounters("bmm", {kernel});
  fixture.AddH200("bmm");
  const v1::Measurement measurement = MeasureAll(BmmContext(), {fixture.Finish()});
  // 68.72e9 / (4e12 * 100.405e-6) = 171.1 FLOP/byte, times 4.8e12.
  EXPECT_NEAR(Kernel(measurement, "attainable_flops").value(), 821.3e12, 0.2e12);
}

TEST(Mfu, AboveWhatTheClockAllowsIsAnError) {
  UnderstandingFixture context = UnderstandingFixture()
                                     .Want("mfu")
                                     .Give("flops_per_call", 2 * kBmmFlops, v1::SCOPE_KIND_KERNEL)
                                     .Dtype(v1::DTYPE_FP16);
  const v1::Measurement measurement = MeasureAll(context, {BmmResult()});
  const v1::Finding* finding = FindFinding(measurement, "mfu_impossible");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity(), v1::SEVERITY_ERROR);
  // 1980 of 1830 MHz.
  EXPECT_NEAR(ValueOf(finding->metric_keys().at("limit"), measurement, {}), 108.197, 0.001);
}

// 104 % of the printed peak is above it, but the chip may clock higher.
TEST(Mfu, AboveThePrintedPeakButBelowTheBoostClockIsPossible) {
  UnderstandingFixture context = UnderstandingFixture()
                                     .Want("mfu")
                                     .Give("flops_per_call", 1.5 * kBmmFlops, v1::SCOPE_KIND_KERNEL)
                                     .Dtype(v1::DTYPE_FP16);
  const v1::Measurement measurement = MeasureAll(context, {BmmResult()});
  EXPECT_GT(Kernel(measurement, "mfu").value(), 100);
  EXPECT_EQ(FindFinding(measurement, "mfu_impossible"), nullptr);
}

// FP32 outside the tensor cores is quoted at the boost clock: nothing above it.
TEST(Mfu, APeakQuotedAtTheBoostClockIsTheLimitItself) {
  UnderstandingFixture context = UnderstandingFixture()
                                     .Want("mfu")
                                     .Give("flops_per_call", kBmmFlops / 10, v1::SCOPE_KIND_KERNEL)
                                     .Dtype(v1::DTYPE_FP32);
  const v1::Measurement measurement = MeasureAll(context, {BmmResult()});
  EXPECT_EQ(OneMetric(measurement.metrics(), "mfu_limit", v1::SCOPE_KIND_DEVICE).value(), 100);
  EXPECT_NE(FindFinding(measurement, "mfu_impossible"), nullptr);
}

TEST(Mfu, OfSeveralCountedKernelsTheLongestIsTakenAndSaid) {
  ResultFixture fixture;
  fixture.AddCounters("bmm", {{.kernel = "fill", .time_us = 2, .compute = 1, .memory = 1}, Bmm()});
  fixture.AddH200("bmm");
  const v1::Measurement measurement = MeasureAll(BmmContext(), {fixture.Finish()});
  EXPECT_EQ(Kernel(measurement, "mfu").scope().name(), kBmm);
  const v1::Finding* finding = FindFinding(measurement, "mfu_kernel_chosen");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->words().at("kernel"), kBmm);
}

// Thousands of kernels a step, one figure of FLOPs per call: to which it belongs
// is not known.
TEST(Mfu, IsNeverOfATimelinesKernelOfUnknownRelation) {
  ResultFixture fixture;
  const std::string artifact =
      fixture.AddTimeline("nsys", ReadShares("h200/launch.nsys.sqlite.gz"), {.kernels = 2045});
  fixture.AddTimelineKernels(artifact, "nsys", 0, -1, {{kBmm, 5, 10}, {"other", 1, 10}});
  fixture.AddH200(artifact);
  const v1::Measurement measurement = MeasureAll(BmmContext(), {fixture.Finish()});
  EXPECT_FALSE(HasMetric(measurement.metrics(), "mfu", v1::SCOPE_KIND_KERNEL));
  ASSERT_NE(FindUnmeasured(measurement, "mfu"), nullptr);
  EXPECT_EQ(FindUnmeasured(measurement, "mfu")->reason(), v1::UNMEASURED_REASON_CONTEXT_MISSING);
}

TEST(Mfu, IsOfTheOneKernelOfATimelineThatThePatternLeaves) {
  ResultFixture fixture;
  const std::string artifact =
      fixture.AddTimeline("nsys", ReadShares("h200/launch.nsys.sqlite.gz"), {.kernels = 2045});
  fixture.AddTimelineKernels(artifact, "nsys", 0, -1, {{kBmm, 1.00405333, 10}});
  fixture.AddH200(artifact);
  const v1::Measurement measurement =
      MeasureAll(BmmContext().KernelPattern("nvjet"), {fixture.Finish()});
  EXPECT_NEAR(Kernel(measurement, "mfu").value(), 69.175, 0.001);
}

TEST(Mfu, OfAStepStandsOnTheUnprofiledStepTime) {
  const UnderstandingFixture context = UnderstandingFixture()
                                           .Want("mfu")
                                           .Give("flops_per_call", kBmmFlops, v1::SCOPE_KIND_KERNEL)
                                           .Give("calls_per_step", 10, v1::SCOPE_KIND_STEP)
                                           .Give("step_time", 2e6, v1::SCOPE_KIND_STEP)
                                           .Dtype(v1::DTYPE_FP16);
  const v1::Measurement measurement = MeasureAll(context, {BmmResult()});
  // 687.2 GFLOP / 2 ms = 343.6 TFLOP/s.
  EXPECT_NEAR(OneMetric(measurement.metrics(), "mfu", v1::SCOPE_KIND_STEP).value(), 34.728, 0.001);
  EXPECT_EQ(measurement.wanted_keys_size(), 2);  // the kernel's and the step's
}

TEST(Mfu, OfAStepIsNeverComputedFromAProfiledStepTime) {
  ResultFixture fixture;
  const std::string artifact =
      fixture.AddTimeline("nsys", ReadShares("h200/launch.nsys.sqlite.gz"), {.kernels = 2045});
  fixture.AddH200(artifact);
  const UnderstandingFixture context = UnderstandingFixture()
                                           .Want("mfu")
                                           .Give("flops_per_step", 1e12, v1::SCOPE_KIND_STEP)
                                           .Dtype(v1::DTYPE_FP16);
  const v1::Measurement measurement = MeasureAll(context, {fixture.Finish()});
  EXPECT_FALSE(HasMetric(measurement.metrics(), "mfu", v1::SCOPE_KIND_STEP));
  EXPECT_EQ(FindUnmeasured(measurement, "mfu")->reason(),
            v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN);
}

// FLOPs of a step are the whole job's: eight GPUs share them.
TEST(Mfu, OfAJobIsOverThePeakOfAllItsRanks) {
  const UnderstandingFixture context = UnderstandingFixture()
                                           .Want("mfu")
                                           .Give("flops_per_step", 8e12, v1::SCOPE_KIND_STEP)
                                           .Give("world_size", 8, v1::SCOPE_KIND_RUN)
                                           .Give("step_time", 2e6, v1::SCOPE_KIND_STEP)
                                           .Dtype(v1::DTYPE_BF16);
  const v1::Measurement measurement = MeasureAll(context, {BmmResult()});
  // 1 TFLOP a rank / 2 ms = 500 of 989.4 TFLOP/s.
  EXPECT_NEAR(OneMetric(measurement.metrics(), "mfu", v1::SCOPE_KIND_STEP).value(), 50.536, 0.001);
  EXPECT_NE(FindFinding(measurement, "mfu_over_all_ranks"), nullptr);
}

TEST(Mfu, OfAnUnknownDeviceIsUnmeasuredWithAHint) {
  ResultFixture fixture;
  fixture.AddCounters("bmm", {Bmm()});
  fixture.AddH200("bmm");
  fixture.result().mutable_environment()->mutable_gpus(0)->set_name("NVIDIA X1");
  const v1::Measurement measurement = MeasureAll(BmmContext(), {fixture.Finish()});
  const v1::UnmeasuredMetric* mfu = FindUnmeasured(measurement, "mfu");
  ASSERT_NE(mfu, nullptr);
  EXPECT_EQ(mfu->reason(), v1::UNMEASURED_REASON_NO_PEAK);
  EXPECT_THAT(mfu->detail(), HasSubstr("NVIDIA X1"));
  EXPECT_THAT(mfu->remedy(), HasSubstr("gpu_peaks.yaml"));
}

// A details page prints the compute capability and no name.
TEST(Mfu, TheClientNamesTheGpuThatNoCaptureNames) {
  ResultFixture fixture;
  fixture.AddCounters("bmm", {Bmm()});
  v1::Gpu& gpu = *fixture.result().mutable_environment()->add_gpus();
  gpu.set_compute_major(9);
  gpu.set_artifact_id("bmm");
  EXPECT_NEAR(Kernel(MeasureAll(BmmContext().Gpu("h200-sxm"), {fixture.Finish()}), "mfu").value(),
              69.175, 0.001);
  const v1::Measurement wrong = MeasureAll(BmmContext().Gpu("T4"), {fixture.Finish()});
  EXPECT_THAT(FindUnmeasured(wrong, "mfu")->detail(), HasSubstr("expected 7.5, found 9.0"));
}

TEST(Mfu, ACapturesGpuCountsBeforeTheClients) {
  const v1::Measurement measurement = MeasureAll(BmmContext().Gpu("T4"), {BmmResult()});
  EXPECT_EQ(OneMetric(measurement.metrics(), "peak_flops", v1::SCOPE_KIND_DEVICE).value(),
            989.4e12);
}

TEST(Mfu, OfADtypeWithoutPeakIsUnmeasured) {
  const v1::Measurement measurement = MeasureAll(BmmContext().Dtype(v1::DTYPE_FP4), {BmmResult()});
  EXPECT_EQ(FindUnmeasured(measurement, "mfu")->reason(), v1::UNMEASURED_REASON_NO_PEAK);
}

TEST(Mfu, WithoutFlopsIsUnmeasuredForLackOfContext) {
  const v1::Measurement measurement =
      MeasureAll(UnderstandingFixture().Want("mfu").Dtype(v1::DTYPE_FP16), {BmmResult()});
  EXPECT_EQ(FindUnmeasured(measurement, "mfu")->reason(), v1::UNMEASURED_REASON_CONTEXT_MISSING);
}

}  // namespace
}  // namespace solward::workflow
