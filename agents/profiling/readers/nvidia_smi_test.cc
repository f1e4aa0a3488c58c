#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_replace.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/test_files.h"
#include "common/status_matchers.h"

namespace solward::readers {
namespace {

using ::solward::testing::FileBytes;
using ::solward::testing::SourcePath;
using ::solward::testing::StatusIs;
using ::solward::testing::TempFile;
using ::testing::HasSubstr;
using ::testing::SizeIs;

absl::StatusOr<SmiReport> ReadCsv(const std::string& bytes) {
  return ReadNvidiaSmiCsv(TempFile(bytes, "smi.csv").path(), ReaderLimits());
}
absl::StatusOr<SmiReport> ReadXml(const std::string& bytes) {
  return ReadNvidiaSmiXml(TempFile(bytes, "smi.xml").path(), ReaderLimits());
}

double ValueOf(const SmiSample& sample, absl::string_view field) {
  const auto found = sample.values.find(field);
  return found == sample.values.end() ? std::nan("") : found->second.value;
}

uint64_t CountOf(const SmiReport& report, absl::string_view name) {
  for (const v1::ParseStatistic& statistic : report.statistics) {
    if (statistic.name() == name) return statistic.count();
  }
  return 0;
}

TEST(NvidiaSmiCsvTest, ReadsValuesInBaseUnits) {
  ASSERT_OK_AND_ASSIGN(
      const SmiReport report,
      ReadNvidiaSmiCsv(SourcePath("tests/data/h200/nvidia-smi-query.csv"), ReaderLimits()));
  ASSERT_THAT(report.samples, SizeIs(1));
  const SmiSample& sample = report.samples[0];
  EXPECT_EQ(sample.device, 0);
  EXPECT_DOUBLE_EQ(ValueOf(sample, "utilization.gpu"), 0);
  EXPECT_EQ(sample.values.at("utilization.gpu").unit, "%");
  EXPECT_DOUBLE_EQ(ValueOf(sample, "memory.total"), 143771.0 * 1048576);
  EXPECT_DOUBLE_EQ(ValueOf(sample, "power.draw"), 78.39);
  EXPECT_DOUBLE_EQ(ValueOf(sample, "clocks.current.sm"), 345e6);
  EXPECT_DOUBLE_EQ(ValueOf(sample, "temperature.gpu"), 33);
  EXPECT_EQ(report.driver_version, "580.159.04");
  ASSERT_THAT(report.gpus, SizeIs(1));
  EXPECT_EQ(report.gpus[0].name(), "NVIDIA H200");
  EXPECT_EQ(report.gpus[0].compute_major(), 9u);
  EXPECT_EQ(report.gpus[0].memory_bytes(), 143771ull << 20);
  EXPECT_EQ(report.gpus[0].max_sm_clock_hz(), 1980000000u);
}

TEST(NvidiaSmiCsvTest, UnitsInTheHeaderAloneAreUsed) {
  ASSERT_OK_AND_ASSIGN(const SmiReport report,
                       ReadCsv("index, utilization.gpu [%], memory.used [MiB]\n1, 87, 575\n"));
  EXPECT_EQ(report.samples[0].device, 1);
  EXPECT_DOUBLE_EQ(ValueOf(report.samples[0], "utilization.gpu"), 87);
  EXPECT_DOUBLE_EQ(ValueOf(report.samples[0], "memory.used"), 575.0 * 1048576);
}

TEST(NvidiaSmiCsvTest, WhatIsUnknownIsAbsentNeverZero) {
  ASSERT_OK_AND_ASSIGN(
      const SmiReport report,
      ReadCsv("uuid, utilization.gpu [%], fan.speed [%], power.draw [W], clocks.sm [MHz]\n"
              "GPU-a, [N/A], ERR!, [Not Supported], [Unknown Error]\n"
              "GPU-b, 5 %, [Insufficient Permissions], [GPU requires reset], N/A\n"));
  EXPECT_TRUE(report.samples[0].values.empty());
  EXPECT_THAT(report.samples[1].values, SizeIs(1));
  EXPECT_EQ(CountOf(report, "smi_values_missing"), 7u);
  EXPECT_EQ(report.samples[1].device, 1);
}

TEST(NvidiaSmiCsvTest, RowsOfALoopKeepTheirDeviceAndNumber) {
  ASSERT_OK_AND_ASSIGN(const SmiReport report, ReadCsv("timestamp, uuid, utilization.gpu [%]\n"
                                                       "2026/01/01 10:00:00.000, GPU-a, 10 %\n"
                                                       "2026/01/01 10:00:00.000, GPU-b, 20 %\n"
                                                       "2026/01/01 10:00:01.000, GPU-a, 30 %\n"
                                                       "2026/01/01 10:00:01.000, GPU-b\n"));
  ASSERT_THAT(report.samples, SizeIs(3));
  EXPECT_EQ(report.samples[2].device, 0);
  EXPECT_EQ(report.samples[2].row, 2);
  EXPECT_THAT(report.gpus, SizeIs(2));
  EXPECT_EQ(CountOf(report, "smi_broken_rows"), 1u);
}

TEST(NvidiaSmiCsvTest, NoRowIsAStatus) {
  EXPECT_THAT(ReadCsv("utilization.gpu [%]\n").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("without a data row")));
}

TEST(NvidiaSmiXmlTest, ReadsEveryGpu) {
  ASSERT_OK_AND_ASSIGN(
      const SmiReport report,
      ReadNvidiaSmiXml(SourcePath("tests/data/h200/nvidia-smi-q-2gpu.xml"), ReaderLimits()));
  ASSERT_THAT(report.samples, SizeIs(2));
  EXPECT_EQ(report.samples[1].device, 1);
  EXPECT_EQ(report.driver_version, "580.159.04");
  EXPECT_EQ(report.cuda_version, "13.0");
  EXPECT_EQ(report.gpus[1].name(), "NVIDIA H200");
  EXPECT_EQ(report.gpus[1].memory_bytes(), 143771ull << 20);
}

TEST(NvidiaSmiXmlTest, ReadsValuesUnderTheirPath) {
  ASSERT_OK_AND_ASSIGN(
      const SmiReport report,
      ReadNvidiaSmiXml(SourcePath("tests/data/h200/nvidia-smi-q.xml"), ReaderLimits()));
  const SmiSample& sample = report.samples[0];
  EXPECT_EQ(sample.values.at("utilization/gpu_util").unit, "%");
  EXPECT_EQ(sample.values.at("gpu_power_readings/instant_power_draw").unit, "W");
  EXPECT_EQ(sample.values.at("temperature/gpu_temp").unit, "Cel");
  EXPECT_DOUBLE_EQ(ValueOf(sample, "max_clocks/sm_clock"), 1980e6);
  EXPECT_EQ(sample.values.count("fan_speed"), 0u);
  EXPECT_GT(CountOf(report, "smi_values_missing"), 0u);
}

TEST(NvidiaSmiXmlTest, OlderElementNamesAreKeptAsTheyAre) {
  ASSERT_OK_AND_ASSIGN(
      const SmiReport report,
      ReadXml("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "
              "\"nvsmi_device_v11.dtd\">\n<nvidia_smi_log><driver_version>515.105.01"
              "</driver_version><gpu id=\"0\"><product_name>Tesla T4</product_name>"
              "<power_readings><power_draw>26.78 W</power_draw></power_readings>"
              "<fan_speed>ERR!</fan_speed></gpu></nvidia_smi_log>"));
  EXPECT_DOUBLE_EQ(ValueOf(report.samples[0], "power_readings/power_draw"), 26.78);
  EXPECT_EQ(report.samples[0].values.count("fan_speed"), 0u);
}

TEST(NvidiaSmiXmlTest, MigModeHasNoUtilizationAndSaysSo) {
  ASSERT_OK_AND_ASSIGN(
      const SmiReport report,
      ReadXml("<nvidia_smi_log><gpu id=\"0\"><mig_mode><current_mig>Enabled</current_mig>"
              "</mig_mode><mig_devices><mig_device><index>0</index><fb_memory_usage><used>5 MiB"
              "</used></fb_memory_usage></mig_device></mig_devices><utilization><gpu_util>N/A"
              "</gpu_util></utilization></gpu></nvidia_smi_log>"));
  EXPECT_EQ(report.samples[0].values.count("utilization/gpu_util"), 0u);
  EXPECT_EQ(report.samples[0].texts.at("mig_mode/current_mig"), "Enabled");
  EXPECT_EQ(CountOf(report, "smi_mig_devices"), 1u);
}

TEST(NvidiaSmiXmlTest, BrokenXmlSaysWhere) {
  const std::string xml = FileBytes(SourcePath("tests/data/h200/nvidia-smi-q.xml"));
  EXPECT_THAT(ReadXml(xml.substr(0, xml.size() / 2)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("smi.xml:")));
  EXPECT_THAT(ReadXml("<other/>").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("<nvidia_smi_log>")));
  EXPECT_THAT(ReadXml("<nvidia_smi_log></nvidia_smi_log>").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("<gpu>")));
  std::string deep = "<nvidia_smi_log>";
  for (int i = 0; i < 100; ++i) deep += "<a>";
  EXPECT_THAT(ReadXml(deep).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested")));
}

}  // namespace
}  // namespace solward::readers
