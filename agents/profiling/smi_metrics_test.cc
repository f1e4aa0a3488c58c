#include "agents/profiling/smi_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents/profiling/readers/test_files.h"
#include "agents/profiling/result_fixture.h"
#include "common/metric_catalogue.h"
#include "common/status_matchers.h"

namespace solward::profiling {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::MetricOf;
using ::solward::testing::MetricsOf;
using ::solward::testing::SourcePath;
using ::solward::testing::StatusIs;
using ::solward::testing::TempFile;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr v1::ScopeKind kDevice = v1::SCOPE_KIND_DEVICE;

v1::DelegationResult Metrics(const readers::SmiReport& report) {
  ResultBuilder builder(BuiltInCatalogue());
  EXPECT_THAT(AddSmiMetrics(report, "artifact-1", {}, &builder), IsOk());
  return std::move(builder).Finish();
}

readers::SmiReport Csv(const std::string& text) {
  absl::StatusOr<readers::SmiReport> report =
      readers::ReadNvidiaSmiCsv(TempFile(text).path(), readers::ReaderLimits());
  EXPECT_THAT(report.status(), IsOk());
  return report.ok() ? *report : readers::SmiReport();
}

TEST(SmiMetricsTest, OneSampleOfARealDevice) {
  const v1::DelegationResult result =
      Metrics(Csv(solward::testing::FileBytes(SourcePath("tests/data/h200/nvidia-smi-query.csv"))));
  EXPECT_DOUBLE_EQ(MetricOf(result, "power", kDevice).value(), 78.39);
  EXPECT_DOUBLE_EQ(MetricOf(result, "device_sm_clock", kDevice).value(), 345e6);
  EXPECT_DOUBLE_EQ(MetricOf(result, "temperature", kDevice).value(), 33);
  EXPECT_EQ(result.environment().driver_version(), "580.159.04");
}

TEST(SmiMetricsTest, BothFormsOfOneDeviceAgree) {
  absl::StatusOr<readers::SmiReport> xml = readers::ReadNvidiaSmiXml(
      SourcePath("tests/data/h200/nvidia-smi-q.xml"), readers::ReaderLimits());
  ASSERT_THAT(xml.status(), IsOk());
  const v1::DelegationResult result = Metrics(*xml);
  for (const char* id :
       {"gpu_utilization", "memory_used", "power", "temperature", "device_sm_clock"}) {
    EXPECT_THAT(MetricsOf(result, id, kDevice), SizeIs(1)) << id;
  }
}

TEST(SmiMetricsTest, SamplesOfALoopAreCombinedPerDevice) {
  const v1::DelegationResult result =
      Metrics(Csv("index, utilization.gpu [%], memory.used [MiB]\n"
                  "0, 10 %, 100 MiB\n1, 90 %, 7 MiB\n0, 30 %, 50 MiB\n1, [N/A], 8 MiB\n"));
  const v1::Metric busy = MetricOf(result, "gpu_utilization", kDevice, "", 0);
  EXPECT_DOUBLE_EQ(busy.value(), 20);
  EXPECT_EQ(busy.provenance().measured().aggregation(), v1::AGGREGATION_MEAN);
  ASSERT_THAT(busy.provenance().measured().rows().ranges(), SizeIs(2));
  EXPECT_EQ(busy.provenance().measured().rows().ranges(1).first(), 2);
  EXPECT_DOUBLE_EQ(MetricOf(result, "memory_used", kDevice, "", 0).value(), 100.0 * 1048576);
  // What had no value is no sample.
  EXPECT_EQ(MetricOf(result, "gpu_utilization", kDevice, "", 1).provenance().measured().samples(),
            1u);
}

TEST(SmiMetricsTest, AWantedDeviceMustBeThere) {
  ResultBuilder builder(BuiltInCatalogue());
  v1::Constraints constraints;
  constraints.add_devices(5);
  EXPECT_THAT(
      AddSmiMetrics(Csv("index, utilization.gpu [%]\n0, 10 %\n"), "a", constraints, &builder),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("devices")));
}

}  // namespace
}  // namespace solward::profiling
