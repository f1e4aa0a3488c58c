#include "agents/profiling/timeline_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/test_files.h"
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
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr v1::ScopeKind kRun = v1::SCOPE_KIND_RUN;
constexpr v1::ScopeKind kStep = v1::SCOPE_KIND_STEP;
constexpr v1::ScopeKind kKernel = v1::SCOPE_KIND_KERNEL;

absl::StatusOr<timeline::Timeline> Read(const std::string& capture) {
  const std::string path = SourcePath("tests/data/" + capture);
  const readers::ReaderLimits limits;
  return capture.find(".nsys.") != std::string::npos ? readers::ReadNsysSqlite(path, limits)
                                                     : readers::ReadTorchTrace(path, limits);
}

v1::DelegationResult Metrics(const timeline::Timeline& timeline, const v1::Region& region = {},
                             const v1::Constraints& constraints = {}) {
  ResultBuilder builder(BuiltInCatalogue());
  EXPECT_THAT(AddTimelineMetrics(timeline, {"artifact-1", region, constraints}, &builder), IsOk());
  return std::move(builder).Finish();
}

v1::DelegationResult Metrics(const std::string& capture) {
  absl::StatusOr<timeline::Timeline> timeline = Read(capture);
  EXPECT_THAT(timeline.status(), IsOk());
  return timeline.ok() ? Metrics(*timeline) : v1::DelegationResult();
}

// Rows of the independent script's table, by column.
std::vector<std::map<std::string, std::string>> SharesTable() {
  std::ifstream in(SourcePath("tests/data/shares.tsv"));
  std::vector<std::string> header;
  std::vector<std::map<std::string, std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    if (header.empty()) {
      header = cells;
      continue;
    }
    std::map<std::string, std::string>& row = rows.emplace_back();
    for (size_t i = 0; i < std::min(cells.size(), header.size()); ++i) row[header[i]] = cells[i];
  }
  return rows;
}

double Number(const std::string& text) {
  double value = -1;
  EXPECT_TRUE(absl::SimpleAtod(text, &value)) << text;
  return value;
}

TEST(TimelineMetricsTest, SharesAgreeWithTheIndependentScriptOnEveryCapture) {
  const std::pair<const char*, const char*> columns[] = {
      {"kernel", "kernel_share"},           {"exposed_comm", "exposed_communication_share"},
      {"all_comm", "communication_share"},  {"exposed_transfer", "exposed_transfer_share"},
      {"idle_launch", "idle_launch_share"}, {"idle_sync", "idle_sync_share"},
      {"idle_host", "idle_host_share"},     {"idle_queued", "idle_queued_share"}};
  const auto table = SharesTable();
  ASSERT_GT(table.size(), 15u);
  for (const auto& row : table) {
    const v1::DelegationResult result = Metrics(row.at("file"));
    const int device = static_cast<int>(Number(row.at("device")));
    for (const auto& [column, id] : columns) {
      EXPECT_THAT(MetricOf(result, id, kRun, "", device).value(),
                  DoubleNear(Number(row.at(column)), 1))
          << row.at("file") << " device " << device << " " << id;
    }
    EXPECT_NEAR(MetricOf(result, "window_time", kRun, "", device).value(),
                Number(row.at("window_ms")) * 1e6, 0.006e6)
        << row.at("file");
    if (row.at("steps") == "0") continue;
    EXPECT_EQ(MetricOf(result, "step_count", kRun, "", device).value(), Number(row.at("steps")));
    EXPECT_NEAR(MetricOf(result, "gpu_busy_time", kStep, "", device).value(),
                Number(row.at("busy_ms_per_step")) * 1e6,
                0.01 * Number(row.at("busy_ms_per_step")) * 1e6)
        << row.at("file");
  }
}

TEST(TimelineMetricsTest, SharesOfALaneSumToTheWhole) {
  for (const char* capture : {"h200/comm.nsys.sqlite.gz", "h200/input.torch.json.gz"}) {
    const v1::DelegationResult result = Metrics(capture);
    for (const v1::Timeline& lane : result.timelines()) {
      double sum = 0;
      for (const char* id : {"kernel_share", "exposed_communication_share",
                             "exposed_transfer_share", "idle_queued_share", "idle_host_share",
                             "idle_sync_share", "idle_launch_share", "idle_unattributed_share"}) {
        sum += MetricOf(result, id, kRun, "", lane.device()).value();
      }
      EXPECT_NEAR(sum, 100, 1e-9) << capture << " device " << lane.device();
      for (const v1::StepRow& row : lane.steps()) {
        EXPECT_EQ(row.kernel_ns() + row.exposed_communication_ns() + row.exposed_transfer_ns() +
                      row.idle_queued_ns() + row.idle_host_ns() + row.idle_sync_ns() +
                      row.idle_launch_ns() + row.idle_unattributed_ns(),
                  row.duration_ns());
      }
    }
  }
}

TEST(TimelineMetricsTest, LaunchLoopHas2045KernelsAStepByBothTools) {
  for (const char* capture : {"h200/launch.nsys.sqlite.gz", "h200/launch.torch.json.gz"}) {
    const v1::DelegationResult result = Metrics(capture);
    const v1::Metric kernels = MetricOf(result, "kernel_count", kStep);
    EXPECT_DOUBLE_EQ(kernels.value(), 2045) << capture;
    EXPECT_EQ(kernels.provenance().measured().aggregation(), v1::AGGREGATION_COUNT_PER_STEP);
    EXPECT_EQ(kernels.provenance().measured().raw_name(), "kernels");
    EXPECT_DOUBLE_EQ(MetricOf(result, "launch_call_count", kStep).value(), 2045) << capture;
    EXPECT_THAT(MetricOf(result, "gpu_busy_time", kStep).value(), DoubleNear(2.34e6, 0.03e6));
    EXPECT_THAT(result.timelines(), SizeIs(1));
    EXPECT_EQ(result.timelines(0).artifact_id(), "artifact-1");
    EXPECT_FALSE(result.timelines(0).step_marker().empty());
  }
}

TEST(TimelineMetricsTest, TheProfilersSlowTheHostDifferently) {
  const double nsys =
      MetricOf(Metrics("h200/launch.nsys.sqlite.gz"), "profiled_step_time", kStep).value();
  const double torch =
      MetricOf(Metrics("h200/launch.torch.json.gz"), "profiled_step_time", kStep).value();
  // 453.63 ms in 20 steps and 267.62 ms in 6, by the independent script.
  EXPECT_THAT(nsys, DoubleNear(22.68e6, 0.05e6));
  EXPECT_THAT(torch, DoubleNear(44.60e6, 0.1e6));
}

TEST(TimelineMetricsTest, ThirtySynchronizationsAStepAreAFindingWithCallCountAndTime) {
  for (const char* capture : {"h200/sync.nsys.sqlite.gz", "h200/sync.torch.json.gz"}) {
    const v1::DelegationResult result = Metrics(capture);
    const std::vector<v1::Finding> findings = FindingsOf(result, "synchronizations_per_step");
    ASSERT_THAT(findings, SizeIs(1)) << capture;
    EXPECT_EQ(findings[0].location().api(), "cudaStreamSynchronize");
    const v1::Metric& count = ByKey(result, findings[0].metric_keys().at("count"));
    EXPECT_DOUBLE_EQ(count.value(), 30) << capture;
    EXPECT_EQ(count.scope().name(), "cudaStreamSynchronize");
    EXPECT_GT(ByKey(result, findings[0].metric_keys().at("time")).value(), 0);
  }
}

TEST(TimelineMetricsTest, ALoopThatWaitsOnceAtItsEndIsNoFinding) {
  EXPECT_THAT(FindingsOf(Metrics("h200/launch.nsys.sqlite.gz"), "synchronizations_per_step"),
              SizeIs(0));
}

TEST(TimelineMetricsTest, UnpinnedCopiesAreAFindingWhereTheyMatter) {
  for (const char* capture : {"h200/input.nsys.sqlite.gz", "h200/input.torch.json.gz",
                              "ground_truth/h2d.nsys.sqlite.gz"}) {
    const v1::DelegationResult result = Metrics(capture);
    const std::vector<v1::Finding> findings = FindingsOf(result, "unpinned_copies");
    ASSERT_THAT(findings, SizeIs(1)) << capture;
    EXPECT_GT(ByKey(result, findings[0].metric_keys().at("count")).value(), 0);
    EXPECT_GT(ByKey(result, findings[0].metric_keys().at("bytes")).value(), 1e6);
    EXPECT_GT(ByKey(result, findings[0].metric_keys().at("time")).value(), 0);
  }
  // Thirty scalars a step read back.
  EXPECT_THAT(FindingsOf(Metrics("h200/sync.nsys.sqlite.gz"), "unpinned_copies"), SizeIs(0));
}

TEST(TimelineMetricsTest, EveryKernelOfAGraphIsAttributedToItsLaunch) {
  // 20 replays of 2,045 kernels and one memset or copy, counted in the export.
  const v1::DelegationResult result = Metrics("h200/graph.nsys.sqlite.gz");
  EXPECT_DOUBLE_EQ(MetricOf(result, "graph_launch_count", kRun).value(), 20);
  EXPECT_DOUBLE_EQ(MetricOf(result, "graph_operation_count", kRun).value(), 20 * 2046);
  EXPECT_DOUBLE_EQ(MetricOf(result, "launch_call_count", kStep).value(), 1);
  ASSERT_THAT(result.graph_launches(), SizeIs(1));
  EXPECT_EQ(result.graph_launches(0).launches(), 20u);
}

TEST(TimelineMetricsTest, RanksKeepTheirOwnStepsAndTimes) {
  const v1::DelegationResult result = Metrics("h200/comm.nsys.sqlite.gz");
  ASSERT_THAT(result.timelines(), SizeIs(2));
  EXPECT_NE(result.timelines(0).device(), result.timelines(1).device());
  for (const v1::Timeline& lane : result.timelines()) {
    EXPECT_THAT(lane.steps(), SizeIs(10));
    const v1::Metric share =
        MetricOf(result, "exposed_communication_share", kRun, "", lane.device());
    EXPECT_THAT(share.value(), DoubleNear(33.5, 1.5));
    EXPECT_EQ(share.scope().rank(), lane.rank());
  }
}

TEST(TimelineMetricsTest, KernelsAreSummedByNameLongestFirst) {
  const v1::DelegationResult result = Metrics("h200/launch.nsys.sqlite.gz");
  ASSERT_GT(result.kernels_size(), 1);
  int64_t before = result.kernels(0).total_time_ns();
  uint64_t launches = 0;
  double share = 0;
  for (const v1::KernelSummary& kernel : result.kernels()) {
    EXPECT_LE(kernel.total_time_ns(), before);
    before = kernel.total_time_ns();
    launches += kernel.launches();
  }
  EXPECT_EQ(launches, 20u * 2045u);
  for (const v1::Metric& metric : MetricsOf(result, "kernel_time_share", kKernel)) {
    share += metric.value();
  }
  // The 20 longest of the export's kernels, summed in SQL.
  EXPECT_NEAR(share, 92.087, 0.001);
  EXPECT_LE(MetricsOf(result, "kernel_total_time", kKernel).size(), 20u);
  const v1::Metric longest = MetricOf(result, "kernel_time", kKernel, result.kernels(0).name());
  EXPECT_DOUBLE_EQ(longest.value(), static_cast<double>(result.kernels(0).total_time_ns()) /
                                        static_cast<double>(result.kernels(0).launches()));
}

TEST(TimelineMetricsTest, TheKernelPatternLimitsKernelsNotShares) {
  absl::StatusOr<timeline::Timeline> timeline = Read("h200/axpy.nsys.sqlite.gz");
  ASSERT_THAT(timeline.status(), IsOk());
  v1::Constraints constraints;
  constraints.set_kernel_pattern("axpy");
  const v1::DelegationResult some = Metrics(*timeline, {}, constraints);
  const v1::DelegationResult all = Metrics(*timeline);
  EXPECT_LT(some.kernels_size(), all.kernels_size());
  EXPECT_EQ(MetricOf(some, "kernel_share", kRun).value(),
            MetricOf(all, "kernel_share", kRun).value());
  constraints.set_kernel_pattern("no_such_kernel");
  const v1::DelegationResult none = Metrics(*timeline, {}, constraints);
  EXPECT_EQ(none.kernels_size(), 0);
  ASSERT_THAT(none.unmeasured(), SizeIs(1));
  EXPECT_EQ(none.unmeasured(0).reason(), v1::UNMEASURED_REASON_NO_VALUE);
}

TEST(TimelineMetricsTest, WithoutStepsThereAreNumbersOfTheRunOnly) {
  const v1::DelegationResult result = Metrics("h200/axpy.nsys.sqlite.gz");
  EXPECT_THAT(MetricsOf(result, "gpu_busy_time", kStep), SizeIs(0));
  EXPECT_THAT(MetricsOf(result, "step_count", kRun), SizeIs(0));
  EXPECT_THAT(MetricsOf(result, "gpu_busy_time", kRun), SizeIs(1));
}

TEST(TimelineMetricsTest, ARegionThatIsNotThereIsAnErrorThatListsThoseThatAre) {
  absl::StatusOr<timeline::Timeline> timeline = Read("h200/launch.nsys.sqlite.gz");
  ASSERT_THAT(timeline.status(), IsOk());
  v1::Region region;
  region.set_nvtx_range("no such range");
  ResultBuilder builder(BuiltInCatalogue());
  EXPECT_THAT(AddTimelineMetrics(*timeline, {"a", region, {}}, &builder),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("step")));
  EXPECT_EQ(builder.metrics().size(), 0u);
}

TEST(TimelineMetricsTest, DeviceBandwidthIsTheDriversOwn) {
  EXPECT_DOUBLE_EQ(
      MetricOf(Metrics("h200/axpy.nsys.sqlite.gz"), "device_dram_bandwidth", v1::SCOPE_KIND_DEVICE)
          .value(),
      4814304000000);
}

}  // namespace
}  // namespace solward::profiling
