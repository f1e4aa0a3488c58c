#include "agents/profiling/counter_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents/profiling/readers/test_files.h"
#include "agents/profiling/recompute.h"
#include "agents/profiling/result_fixture.h"
#include "common/metric_catalogue.h"
#include "common/status_matchers.h"

namespace solward::profiling {
namespace {

using ::solward::testing::ByKey;
using ::solward::testing::FindingsOf;
using ::solward::testing::IsOk;
using ::solward::testing::MetricOf;
using ::solward::testing::MetricsOf;
using ::solward::testing::SourcePath;
using ::solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr v1::ScopeKind kKernel = v1::SCOPE_KIND_KERNEL;

v1::DelegationResult Metrics(const std::string& capture, const v1::Constraints& constraints = {},
                             bool with_totals = true) {
  absl::StatusOr<readers::CounterReport> report =
      readers::ReadNcuCsv(SourcePath("tests/data/" + capture), readers::ReaderLimits());
  EXPECT_THAT(report.status(), IsOk());
  if (!report.ok()) return {};
  ResultBuilder builder(BuiltInCatalogue());
  EXPECT_THAT(AddCounterMetrics(*report, {"artifact-1", constraints, with_totals}, &builder),
              IsOk());
  return std::move(builder).Finish();
}

double Value(const v1::DelegationResult& result, absl::string_view id, absl::string_view kernel) {
  return MetricOf(result, id, kKernel, kernel).value();
}

TEST(CounterMetricsTest, ValuesOfOneLaunchAreThoseOfTheExport) {
  const v1::DelegationResult result = Metrics("h200/axpy.ncu.raw.csv");
  // Read from the CSV by eye.
  EXPECT_DOUBLE_EQ(Value(result, "kernel_time", "axpy("), 468288);
  EXPECT_DOUBLE_EQ(Value(result, "dram_throughput", "axpy("), 70.688841);
  EXPECT_DOUBLE_EQ(Value(result, "memory_throughput", "axpy("), 70.688841);
  EXPECT_DOUBLE_EQ(Value(result, "compute_throughput", "axpy("), 21.445631);
  EXPECT_DOUBLE_EQ(Value(result, "l2_throughput", "axpy("), 79.045954);
  EXPECT_DOUBLE_EQ(Value(result, "l1_throughput", "axpy("), 18.615861);
  EXPECT_NEAR(Value(result, "dram_bandwidth", "axpy("), 3.401158e12, 1);
  EXPECT_DOUBLE_EQ(Value(result, "achieved_occupancy", "axpy("), 74.216759);
  EXPECT_DOUBLE_EQ(Value(result, "theoretical_occupancy", "axpy("), 100);
  EXPECT_DOUBLE_EQ(Value(result, "registers_per_thread", "axpy("), 16);
  EXPECT_DOUBLE_EQ(Value(result, "waves_per_sm", "axpy("), 496.48);
  EXPECT_NEAR(Value(result, "sm_clock", "axpy("), 1.977558e9, 1);
  EXPECT_DOUBLE_EQ(Value(result, "compute_throughput", "fma_loop("), 93.705102);
  EXPECT_DOUBLE_EQ(Value(result, "tensor_pipe_utilization", "fma_loop("), 0.005889);
}

TEST(CounterMetricsTest, SpeedOfLightIsTheLargerOfComputeAndMemory) {
  const v1::DelegationResult result = Metrics("h200/axpy.ncu.raw.csv");
  const v1::Metric sol = MetricOf(result, "sol", kKernel, "axpy(");
  EXPECT_DOUBLE_EQ(sol.value(), 70.688841);
  EXPECT_EQ(sol.provenance().derived().formula_id(), "sol");
  EXPECT_DOUBLE_EQ(Value(result, "sol", "fma_loop("), 93.705102);
}

TEST(CounterMetricsTest, SeveralLaunchesOfOneNameAreTheirMean) {
  const v1::DelegationResult result = Metrics("h200/bmm.ncu.raw.csv");
  const v1::Metric compute = MetricOf(result, "compute_throughput", kKernel, "nvjet");
  EXPECT_DOUBLE_EQ(compute.value(), (83.800905 + 84.301484 + 84.479438) / 3);
  const v1::Measured& measured = compute.provenance().measured();
  EXPECT_EQ(measured.tool(), "ncu");
  EXPECT_EQ(measured.artifact_id(), "artifact-1");
  EXPECT_EQ(measured.raw_name(), "sm__throughput.avg.pct_of_peak_sustained_elapsed");
  EXPECT_EQ(measured.rows().table(), "raw");
  ASSERT_THAT(measured.rows().ranges(), SizeIs(1));
  EXPECT_EQ(measured.rows().ranges(0).first(), 0);
  EXPECT_EQ(measured.rows().ranges(0).last(), 2);
  EXPECT_EQ(measured.aggregation(), v1::AGGREGATION_MEAN);
  EXPECT_EQ(measured.samples(), 3u);
  EXPECT_DOUBLE_EQ(measured.spread().min(), 83.800905);
  EXPECT_DOUBLE_EQ(measured.spread().max(), 84.479438);
  EXPECT_NEAR(measured.spread().stddev(), 0.351, 0.001);
  EXPECT_DOUBLE_EQ(
      MetricOf(result, "kernel_time", kKernel, "nvjet").provenance().measured().unit_scale(), 1000);
}

TEST(CounterMetricsTest, TheIssuesValuesForTheBatchedGemm) {
  for (const char* page : {"raw", "details"}) {
    const v1::DelegationResult result = Metrics(std::string("h200/bmm.ncu.") + page + ".csv");
    EXPECT_THAT(Value(result, "compute_throughput", "nvjet"), DoubleNear(84.15, 0.35)) << page;
    EXPECT_THAT(Value(result, "dram_throughput", "nvjet"), DoubleNear(49.7, 0.1)) << page;
    EXPECT_THAT(Value(result, "sm_clock", "nvjet"), DoubleNear(1.50e9, 0.01e9)) << page;
    // 68.72 GFLOP in that time at 989.4 TFLOP/s.
    const double mfu = 68.719476736e9 / (Value(result, "kernel_time", "nvjet") * 1e-9) / 989.4e12;
    EXPECT_THAT(100 * mfu, DoubleNear(69.2, 0.3)) << page;
  }
}

TEST(CounterMetricsTest, ADetailsPageCitesItsPrintedNames) {
  const v1::DelegationResult result = Metrics("h200/axpy.ncu.details.csv");
  const v1::Metric bandwidth = MetricOf(result, "dram_bandwidth", kKernel, "axpy(");
  EXPECT_DOUBLE_EQ(bandwidth.value(), 3.40e12);
  EXPECT_EQ(bandwidth.provenance().measured().raw_name(),
            "Memory Workload Analysis/Memory Throughput");
  EXPECT_EQ(bandwidth.provenance().measured().rows().table(), "details");
  EXPECT_DOUBLE_EQ(bandwidth.provenance().measured().unit_scale(), 1e12);
  EXPECT_TRUE(MetricsOf(result, "tensor_pipe_utilization", kKernel).empty());
}

TEST(CounterMetricsTest, WarpStallsAreSharesOfTheirSum) {
  const v1::DelegationResult result = Metrics("h200/axpy.ncu.raw.csv");
  const std::string kernel = "axpy(float, const float *, float *, unsigned long)";
  EXPECT_DOUBLE_EQ(Value(result, "stall_cycles", kernel + "|long_scoreboard"), 47.810248);
  // The tool's own sum of the same chain is 54.558 cycles, its own share 87.6 %.
  EXPECT_NEAR(Value(result, "stall_cycles", kernel + "|all"), 54.558, 0.02);
  EXPECT_NEAR(Value(result, "warp_stall", kernel + "|long_scoreboard"), 87.6, 0.05);
  for (const v1::Metric& stall : MetricsOf(result, "warp_stall", kKernel)) {
    // A selected warp does not wait.
    EXPECT_THAT(stall.scope().name(), ::testing::Not(HasSubstr("|selected")));
    EXPECT_GT(stall.value(), 0);
  }
}

TEST(CounterMetricsTest, EstimatesOfTheToolsRulesAreFindings) {
  const v1::DelegationResult result = Metrics("h200/axpy.ncu.details.csv");
  bool found = false;
  for (const v1::Finding& finding : FindingsOf(result, "tool_rule")) {
    const v1::Metric& estimate = ByKey(result, finding.metric_keys().at("estimate"));
    if (finding.words().at("rule") != "CPIStall") continue;
    found = true;
    EXPECT_DOUBLE_EQ(estimate.value(), 87.63);
    EXPECT_EQ(estimate.id(), "tool_speedup_estimate");
    EXPECT_THAT(finding.location().kernel(), HasSubstr("axpy("));
    EXPECT_THAT(finding.detail(), HasSubstr("scoreboard"));
  }
  EXPECT_TRUE(found);
}

TEST(CounterMetricsTest, TheDevicesOwnBandwidthFollowsFromClockAndBus) {
  const v1::DelegationResult result = Metrics("h200/axpy.ncu.raw.csv");
  // 2 x 3.201 GHz x 6016 bit / 8.
  EXPECT_DOUBLE_EQ(MetricOf(result, "device_dram_bandwidth", v1::SCOPE_KIND_DEVICE).value(),
                   4.814304e12);
  ASSERT_THAT(result.environment().gpus(), SizeIs(1));
  EXPECT_EQ(result.environment().gpus(0).artifact_id(), "artifact-1");
}

TEST(CounterMetricsTest, KernelSummariesListTheirMetricsLongestFirst) {
  const v1::DelegationResult result = Metrics("h200/axpy.ncu.raw.csv");
  ASSERT_THAT(result.kernels(), SizeIs(2));
  const v1::KernelSummary& axpy = result.kernels(0);
  EXPECT_THAT(axpy.name(), HasSubstr("axpy("));
  EXPECT_EQ(axpy.total_time_ns(), 468288);
  EXPECT_EQ(axpy.launches(), 1u);
  EXPECT_EQ(axpy.grid_x(), 524288u);
  EXPECT_EQ(axpy.block_x(), 256u);
  EXPECT_EQ(axpy.category(), v1::KERNEL_CATEGORY_COMPUTE);
  for (const std::string& key : axpy.metric_keys()) {
    EXPECT_THAT(ByKey(result, key).scope().name(), HasSubstr("axpy("));
  }
}

TEST(CounterMetricsTest, TotalsAreLeftToATimelineWhenThereIsOne) {
  EXPECT_THAT(MetricsOf(Metrics("h200/bmm.ncu.raw.csv"), "kernel_launches", kKernel), SizeIs(1));
  const v1::DelegationResult beside = Metrics("h200/bmm.ncu.raw.csv", {}, /*with_totals=*/false);
  EXPECT_THAT(MetricsOf(beside, "kernel_launches", kKernel), SizeIs(0));
  EXPECT_THAT(MetricsOf(beside, "kernel_total_time", kKernel), SizeIs(0));
  EXPECT_THAT(MetricsOf(beside, "kernel_time", kKernel), SizeIs(1));
}

TEST(CounterMetricsTest, ConstraintsLeaveSomeKernels) {
  v1::Constraints constraints;
  constraints.set_kernel_pattern("^fma");
  const v1::DelegationResult result = Metrics("h200/axpy.ncu.raw.csv", constraints);
  ASSERT_THAT(result.kernels(), SizeIs(1));
  EXPECT_THAT(result.kernels(0).name(), HasSubstr("fma_loop("));

  absl::StatusOr<readers::CounterReport> report =
      readers::ReadNcuCsv(SourcePath("tests/data/h200/axpy.ncu.raw.csv"), readers::ReaderLimits());
  ASSERT_THAT(report.status(), IsOk());
  ResultBuilder builder(BuiltInCatalogue());
  constraints.set_kernel_pattern("gemm");
  EXPECT_THAT(AddCounterMetrics(*report, {"a", constraints, true}, &builder),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("gemm"), HasSubstr("axpy("))));
  constraints.set_kernel_pattern("(");
  EXPECT_THAT(AddCounterMetrics(*report, {"a", constraints, true}, &builder),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kernel_pattern")));
}

// A report with one launch of kernel "k" and these values in percent or By/s.
readers::CounterReport Report(std::map<std::string, double> values) {
  readers::CounterReport report;
  report.table = "raw";
  readers::CounterLaunch launch;
  launch.kernel = "k";
  for (const auto& [name, value] : values) launch.values[name] = {value, "%", 1};
  report.launches.push_back(launch);
  return report;
}

TEST(CounterMetricsTest, OlderExportsGiveBandwidthAndTensorPipeByTheirParts) {
  ResultBuilder builder(BuiltInCatalogue());
  ASSERT_THAT(
      AddCounterMetrics(
          Report({{"dram__bytes_read.sum.per_second", 200e9},
                  {"dram__bytes_write.sum.per_second", 100e9},
                  {"sm__pipe_tensor_op_imma_cycles_active.avg.pct_of_peak_sustained_elapsed", 3},
                  {"sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed", 41}}),
          {"a", {}, true}, &builder),
      IsOk());
  const v1::DelegationResult result = std::move(builder).Finish();
  double whole = 0;
  for (const v1::Metric& metric : MetricsOf(result, "dram_bandwidth", kKernel)) {
    if (metric.scope().name() == "k") whole = metric.value();
  }
  EXPECT_DOUBLE_EQ(whole, 300e9);
  const v1::Metric tensor = MetricOf(result, "tensor_pipe_utilization", kKernel, "k");
  EXPECT_DOUBLE_EQ(tensor.value(), 41);
  EXPECT_THAT(tensor.provenance().measured().raw_name(), HasSubstr("hmma"));
}

}  // namespace
}  // namespace solward::profiling
