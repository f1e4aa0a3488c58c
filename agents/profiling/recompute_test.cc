#include "agents/profiling/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents/profiling/result_fixture.h"
#include "agents/profiling/workspace_fixture.h"
#include "common/status_matchers.h"

namespace solward::profiling {
namespace {

using ::solward::testing::IsOkAndHolds;
using ::solward::testing::MetricOf;
using ::solward::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RecomputeTest : public solward::testing::WorkspaceTest {
 protected:
  v1::DelegationResult Measure(const std::vector<std::string>& captures,
                               const v1::Region& region = {}) {
    std::vector<v1::ArtifactReference> artifacts;
    for (const std::string& capture : captures) artifacts.push_back(PutData(capture));
    v1::DelegationRequest request = Request(artifacts);
    *request.mutable_region() = region;
    auto result = Run(request);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : v1::DelegationResult();
  }

  std::vector<v1::RecomputedMetric> Recompute(const std::vector<v1::Metric>& metrics) {
    auto verdicts = specialist_->Recompute(metrics, *workspace_);
    EXPECT_TRUE(verdicts.ok()) << verdicts.status();
    return verdicts.ok() ? *verdicts : std::vector<v1::RecomputedMetric>();
  }

  v1::RecomputedMetric Recompute(const v1::Metric& metric) {
    const std::vector<v1::RecomputedMetric> verdicts = Recompute(std::vector<v1::Metric>{metric});
    return verdicts.size() == 1 ? verdicts.front() : v1::RecomputedMetric();
  }

  static std::vector<v1::Metric> MeasuredOf(const v1::DelegationResult& result) {
    std::vector<v1::Metric> measured;
    for (const v1::Metric& metric : result.metrics()) {
      if (metric.provenance().has_measured()) measured.push_back(metric);
    }
    return measured;
  }

  void ExpectAllMatch(const v1::DelegationResult& result) {
    const std::vector<v1::Metric> metrics = MeasuredOf(result);
    ASSERT_GT(metrics.size(), 10u);
    const std::vector<v1::RecomputedMetric> verdicts = Recompute(metrics);
    ASSERT_EQ(verdicts.size(), metrics.size());
    for (size_t i = 0; i < metrics.size(); ++i) {
      EXPECT_EQ(verdicts[i].key(), metrics[i].key());
      EXPECT_EQ(verdicts[i].verdict(), v1::RECOMPUTE_VERDICT_MATCHES)
          << verdicts[i].detail() << "\n"
          << metrics[i].DebugString();
    }
  }
};

TEST_F(RecomputeTest, EveryMeasuredNumberOfCountersMatches) {
  ExpectAllMatch(Measure({"h200/bmm.ncu.raw.csv", "h200/bmm.ncu.details.csv",
                          "h200/axpy.ncu.details.csv", "ground_truth/rnn_small.ncu.raw.csv"}));
}

TEST_F(RecomputeTest, EveryMeasuredNumberOfTimelinesMatches) {
  ExpectAllMatch(
      Measure({"h200/comm.nsys.sqlite.gz", "h200/input.torch.json.gz", "h200/graph.nsys.sqlite.gz",
               "h200/axpy.nsys.sqlite.gz", "h200/sync.torch.json.gz", "h200/nvidia-smi-query.csv",
               "h200/nvidia-smi-q.xml"}));
}

TEST_F(RecomputeTest, ARegionIsPartOfTheProvenance) {
  v1::Region region;
  region.set_nvtx_range("step");
  region.set_skip_steps(2);
  region.set_max_steps(5);
  const v1::DelegationResult result = Measure({"h200/launch.nsys.sqlite.gz"}, region);
  EXPECT_EQ(MetricOf(result, "step_count", v1::SCOPE_KIND_RUN).value(), 5);
  ExpectAllMatch(result);
}

TEST_F(RecomputeTest, OneChangedDigitDiffers) {
  const v1::DelegationResult result =
      Measure({"h200/bmm.ncu.raw.csv", "h200/launch.nsys.sqlite.gz"});
  for (v1::Metric metric : {MetricOf(result, "dram_throughput", v1::SCOPE_KIND_KERNEL, "nvjet"),
                            MetricOf(result, "idle_launch_time", v1::SCOPE_KIND_STEP),
                            MetricOf(result, "kernel_count", v1::SCOPE_KIND_STEP)}) {
    const double truth = metric.value();
    metric.set_value(truth * (1 + 1e-6));
    const v1::RecomputedMetric verdict = Recompute(metric);
    EXPECT_EQ(verdict.verdict(), v1::RECOMPUTE_VERDICT_DIFFERS) << metric.id();
    EXPECT_NEAR(verdict.value(), truth, 1e-9 * truth);
  }
}

TEST_F(RecomputeTest, ProvenanceThatTheArtifactDoesNotHoldIsNotFound) {
  const v1::DelegationResult result =
      Measure({"h200/bmm.ncu.raw.csv", "h200/launch.nsys.sqlite.gz"});
  v1::Metric column = MetricOf(result, "dram_throughput", v1::SCOPE_KIND_KERNEL, "nvjet");
  column.mutable_provenance()->mutable_measured()->set_raw_name("no__such.metric");
  EXPECT_EQ(Recompute(column).verdict(), v1::RECOMPUTE_VERDICT_NOT_FOUND);

  v1::Metric rows = MetricOf(result, "dram_throughput", v1::SCOPE_KIND_KERNEL, "nvjet");
  rows.mutable_provenance()->mutable_measured()->mutable_rows()->mutable_ranges(0)->set_first(900);
  rows.mutable_provenance()->mutable_measured()->mutable_rows()->mutable_ranges(0)->set_last(901);
  EXPECT_EQ(Recompute(rows).verdict(), v1::RECOMPUTE_VERDICT_NOT_FOUND);

  v1::Metric part = MetricOf(result, "idle_launch_time", v1::SCOPE_KIND_STEP);
  part.mutable_provenance()->mutable_measured()->set_raw_name("idle_imagined");
  EXPECT_EQ(Recompute(part).verdict(), v1::RECOMPUTE_VERDICT_NOT_FOUND);

  v1::Metric process = MetricOf(result, "kernel_count", v1::SCOPE_KIND_STEP);
  for (auto& condition :
       *process.mutable_provenance()->mutable_measured()->mutable_rows()->mutable_conditions()) {
    if (condition.column() == "pid") condition.set_value("1");
  }
  EXPECT_EQ(Recompute(process).verdict(), v1::RECOMPUTE_VERDICT_NOT_FOUND);

  v1::Metric given = column;
  given.mutable_provenance()->mutable_given()->set_field("context.step_time");
  EXPECT_EQ(Recompute(given).verdict(), v1::RECOMPUTE_VERDICT_NOT_FOUND);
}

TEST_F(RecomputeTest, AnArtifactThatIsGoneOrUnreadableIsSaidSo) {
  v1::Metric metric;
  metric.set_key("m1");
  metric.mutable_provenance()->mutable_measured()->set_artifact_id("gone");
  EXPECT_EQ(Recompute(metric).verdict(), v1::RECOMPUTE_VERDICT_NO_ARTIFACT);
  metric.mutable_provenance()->mutable_measured()->set_artifact_id(Put("garbage", "x").id());
  EXPECT_EQ(Recompute(metric).verdict(), v1::RECOMPUTE_VERDICT_NO_ARTIFACT);
}

TEST(AggregateTest, CombinesAsItSays) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_THAT(Aggregate(values, v1::AGGREGATION_SUM), IsOkAndHolds(10));
  EXPECT_THAT(Aggregate(values, v1::AGGREGATION_MEAN), IsOkAndHolds(2.5));
  EXPECT_THAT(Aggregate(values, v1::AGGREGATION_MEDIAN), IsOkAndHolds(2.5));
  EXPECT_THAT(Aggregate(values, v1::AGGREGATION_MIN), IsOkAndHolds(1));
  EXPECT_THAT(Aggregate(values, v1::AGGREGATION_MAX), IsOkAndHolds(4));
  EXPECT_THAT(Aggregate(values, v1::AGGREGATION_COUNT), IsOkAndHolds(4));
  EXPECT_THAT(Aggregate({7}, v1::AGGREGATION_SINGLE), IsOkAndHolds(7));
  EXPECT_THAT(Aggregate(values, v1::AGGREGATION_SINGLE),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("one row")));
  EXPECT_THAT(Aggregate({}, v1::AGGREGATION_MEAN),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no row")));
  EXPECT_THAT(Aggregate(values, v1::AGGREGATION_TIME_MODEL),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("TIME_MODEL")));
}

}  // namespace
}  // namespace solward::profiling
