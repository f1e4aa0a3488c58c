#include "agents/profiling/readers/ncu_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_replace.h"
#include "agents/profiling/readers/ncu_names.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/test_files.h"
#include "common/status_matchers.h"

namespace solward::readers {
namespace {

using ::solward::testing::FileBytes;
using ::solward::testing::Gzip;
using ::solward::testing::SourcePath;
using ::solward::testing::StatusIs;
using ::solward::testing::TempFile;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

absl::StatusOr<CounterReport> Read(const std::string& bytes) {
  return ReadNcuCsv(TempFile(bytes, "k.csv").path(), ReaderLimits());
}

absl::StatusOr<CounterReport> ReadData(const std::string& name) {
  return ReadNcuCsv(SourcePath("tests/data/" + name), ReaderLimits());
}

uint64_t CountOf(const CounterReport& report, absl::string_view name) {
  for (const v1::ParseStatistic& statistic : report.statistics) {
    if (statistic.name() == name) return statistic.count();
  }
  return 0;
}

double ValueOf(const CounterLaunch& launch, absl::string_view name) {
  const auto found = launch.values.find(name);
  return found == launch.values.end() ? std::nan("") : found->second.value;
}

constexpr char kHeader[] =
    R"("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",)"
    R"("Block Size","Grid Size","Device","CC")";

// A raw page with one metric of one launch.
std::string Raw(const std::string& metrics, const std::string& units, const std::string& values) {
  return std::string(kHeader) + "," + metrics + "\n" + R"("","","","","","","","","","","",)" +
         units + "\n" +
         R"-("0","9","app","h","axpy(float *)","1","7","(256, 1, 1)","(1024, 2, 1)","0","9.0",)-" +
         values + "\n";
}

TEST(NcuRawPageTest, ReadsLaunchesInBaseUnits) {
  ASSERT_OK_AND_ASSIGN(const CounterReport report, ReadData("h200/axpy.ncu.raw.csv"));
  EXPECT_EQ(report.table, "raw");
  EXPECT_EQ(report.process_name, "axpy");
  ASSERT_THAT(report.launches, SizeIs(2));
  const CounterLaunch& axpy = report.launches[0];
  EXPECT_EQ(axpy.id, 0);
  EXPECT_EQ(axpy.kernel, "axpy(float, const float *, float *, unsigned long)");
  EXPECT_EQ(axpy.grid[0], 524288u);
  EXPECT_EQ(axpy.block[0], 256u);
  // "468.288000" us, "3.401158" Tbyte/s, "524,288", "1.977558" Ghz in the file.
  EXPECT_DOUBLE_EQ(ValueOf(axpy, "gpu__time_duration.sum"), 468288);
  EXPECT_EQ(axpy.values.at("gpu__time_duration.sum").unit, "ns");
  EXPECT_DOUBLE_EQ(axpy.values.at("gpu__time_duration.sum").unit_scale, 1000);
  EXPECT_NEAR(ValueOf(axpy, "dram__bytes.sum.per_second"), 3.401158e12, 1);
  EXPECT_EQ(axpy.values.at("dram__bytes.sum.per_second").unit, "By/s");
  EXPECT_DOUBLE_EQ(ValueOf(axpy, "launch__grid_size"), 524288);
  EXPECT_NEAR(ValueOf(axpy, "gpc__cycles_elapsed.avg.per_second"), 1.977558e9, 1);
  EXPECT_EQ(report.launches[1].kernel, "fma_loop(float *, int)");
  EXPECT_DOUBLE_EQ(ValueOf(report.launches[1], "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
                   93.705102);
}

TEST(NcuRawPageTest, WhatHasNoValueIsCountedNotZero) {
  ASSERT_OK_AND_ASSIGN(const CounterReport report, ReadData("h200/axpy.ncu.raw.csv"));
  EXPECT_EQ(report.launches[0].values.count("derived__local_spilling_requests_pct"), 0u);
  // Three columns say "no data" in each of two launches.
  EXPECT_EQ(CountOf(report, "ncu_values_missing"), 6u);
  ASSERT_OK_AND_ASSIGN(const CounterReport odd, Read(Raw(R"("a__x.sum","a__y.sum","a__z.sum")",
                                                         R"("%","%","%")", R"("n/a","nan","0")")));
  EXPECT_EQ(CountOf(odd, "ncu_values_missing"), 2u);
  EXPECT_DOUBLE_EQ(ValueOf(odd.launches[0], "a__z.sum"), 0);
}

TEST(NcuRawPageTest, TellsTheDevice) {
  ASSERT_OK_AND_ASSIGN(const CounterReport report, ReadData("h200/bmm.ncu.raw.csv"));
  ASSERT_THAT(report.gpus, SizeIs(1));
  const v1::Gpu& gpu = report.gpus[0];
  EXPECT_EQ(gpu.name(), "NVIDIA H200");
  EXPECT_EQ(gpu.compute_major(), 9u);
  EXPECT_EQ(gpu.compute_minor(), 0u);
  EXPECT_EQ(gpu.sm_count(), 132u);
  EXPECT_EQ(gpu.memory_bytes(), 150109880320u);
  EXPECT_EQ(gpu.max_sm_clock_hz(), 1980000000u);
  // 2 x 3.201 GHz x 6016 bit / 8.
  EXPECT_EQ(gpu.memory_bandwidth(), 4814304000000u);
}

TEST(NcuRawPageTest, ProgramOutputBeforeAndBetweenRowsIsCounted) {
  std::string csv = FileBytes(SourcePath("tests/data/h200/axpy.ncu.raw.csv"));
  const size_t last_row = csv.rfind("\n\"1\"");
  ASSERT_NE(last_row, std::string::npos);
  csv.insert(last_row + 1, "==PROF== Profiling \"fma_loop\": 0%....100%\nloss \"0.25\n");
  ASSERT_OK_AND_ASSIGN(const CounterReport report, Read("epoch 1\n==PROF== Connected\n" + csv));
  EXPECT_THAT(report.launches, SizeIs(2));
  EXPECT_EQ(CountOf(report, "ncu_lines_before_header"), 2u);
  EXPECT_EQ(CountOf(report, "ncu_foreign_lines"), 2u);
}

TEST(NcuRawPageTest, Utf16AndGzipReadLikeThePlainFile) {
  const std::string csv = Raw(R"("a__x.sum")", R"("Ghz")", R"("1.5")");
  std::string utf16 = "\xff\xfe";
  for (const char c : csv) utf16 += {c, '\0'};
  for (const std::string& bytes : {utf16, Gzip(csv)}) {
    ASSERT_OK_AND_ASSIGN(const CounterReport report, Read(bytes));
    EXPECT_DOUBLE_EQ(ValueOf(report.launches[0], "a__x.sum"), 1.5e9);
  }
}

TEST(NcuRawPageTest, ACommaLocaleIsRecognisedWhereItIsUnambiguous) {
  const std::string metrics = R"("a__x.sum","a__y.sum")";
  ASSERT_OK_AND_ASSIGN(const CounterReport report,
                       Read(Raw(metrics, R"("ns","%")", R"("117.344","65,77")")));
  EXPECT_DOUBLE_EQ(ValueOf(report.launches[0], "a__x.sum"), 117344);
  EXPECT_DOUBLE_EQ(ValueOf(report.launches[0], "a__y.sum"), 65.77);
  EXPECT_THAT(Read(Raw(metrics, R"("ns","%")", R"("117.344","65")")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("k.csv"), HasSubstr("117.344"))));
}

TEST(NcuRawPageTest, ALaunchIdThatComesTwiceCountsOnce) {
  const std::string csv = Raw(R"("a__x.sum")", R"("%")", R"("1.5")");
  const std::string row = csv.substr(csv.rfind("\n\"0\"") + 1);
  ASSERT_OK_AND_ASSIGN(const CounterReport report, Read(csv + row));
  EXPECT_THAT(report.launches, SizeIs(1));
  EXPECT_EQ(CountOf(report, "ncu_duplicate_launch_ids"), 1u);
}

TEST(NcuRawPageTest, BrokenInputIsAStatus) {
  EXPECT_THAT(Read("no header here\n").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no header line")));
  const std::string csv = Raw(R"("a__x.sum")", R"("%")", R"("1.5")");
  EXPECT_THAT(Read(csv.substr(0, csv.rfind("\n\"0\"") + 1)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no kernel launch")));
  ASSERT_OK_AND_ASSIGN(const CounterReport cut, Read(csv.substr(0, csv.size() - 3)));
  EXPECT_EQ(CountOf(cut, "ncu_truncated_row"), 1u);
  ReaderLimits limits;
  limits.max_model_bytes = 1000;
  EXPECT_THAT(ReadNcuCsv(SourcePath("tests/data/h200/axpy.ncu.raw.csv"), limits).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_model_bytes")));
}

TEST(NcuDetailsPageTest, ReadsMetricsRulesAndEstimates) {
  ASSERT_OK_AND_ASSIGN(const CounterReport report, ReadData("h200/axpy.ncu.details.csv"));
  EXPECT_EQ(report.table, "details");
  ASSERT_THAT(report.launches, SizeIs(2));
  const CounterLaunch& axpy = report.launches[0];
  EXPECT_DOUBLE_EQ(ValueOf(axpy, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"), 70.69);
  // The name "Memory Throughput" twice: percent in one section, byte/s in another.
  EXPECT_DOUBLE_EQ(
      ValueOf(axpy, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"), 70.69);
  EXPECT_DOUBLE_EQ(ValueOf(axpy, "dram__bytes.sum.per_second"), 3.40e12);
  EXPECT_EQ(axpy.printed_names.at("dram__bytes.sum.per_second"),
            "Memory Workload Analysis/Memory Throughput");
  EXPECT_EQ(axpy.texts.at("Launch Statistics/Function Cache Configuration"), "CachePreferNone");
  double stall = -1;
  for (const CounterRule& rule : report.rules) {
    if (rule.launch_id == 0 && rule.rule == "CPIStall" && rule.estimated_speedup_percent >= 0) {
      EXPECT_EQ(rule.type, "OPT");
      EXPECT_EQ(rule.section, "WarpStateStats");
      EXPECT_EQ(rule.speedup_type, "local");
      EXPECT_THAT(rule.text, HasSubstr("scoreboard dependency"));
      stall = rule.estimated_speedup_percent;
    }
  }
  EXPECT_DOUBLE_EQ(stall, 87.63);
  ASSERT_THAT(report.gpus, SizeIs(1));
  EXPECT_EQ(report.gpus[0].compute_major(), 9u);
  EXPECT_EQ(report.gpus[0].sm_count(), 132u);
  EXPECT_EQ(report.gpus[0].name(), "");
}

TEST(NcuDetailsPageTest, MetricsAskedForByNameKeepIt) {
  ASSERT_OK_AND_ASSIGN(
      const CounterReport report,
      Read(std::string(kHeader) +
           R"(,"Section Name","Metric Name","Metric Unit","Metric Value")"
           "\n"
           R"-("0","9","app","h","k","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0",)-"
           R"("Command line profiler metrics","dram__bytes_read.sum.per_second","Gbyte/s","12.50")"
           "\n"));
  EXPECT_DOUBLE_EQ(ValueOf(report.launches[0], "dram__bytes_read.sum.per_second"), 12.5e9);
  EXPECT_EQ(report.launches[0].printed_names.at("dram__bytes_read.sum.per_second"),
            "Command line profiler metrics/dram__bytes_read.sum.per_second");
}

// Half of the last digit that a text of `decimals` decimals shows, in base units.
double HalfDigit(double scale, int decimals) { return 0.5000001 * scale * std::pow(10, -decimals); }

TEST(NcuNamesTest, PrintedAndRawValuesOfOneReportAgreeToThePrintedDigits) {
  for (const std::string name : {"bmm", "axpy"}) {
    ASSERT_OK_AND_ASSIGN(const CounterReport raw, ReadData("h200/" + name + ".ncu.raw.csv"));
    ASSERT_OK_AND_ASSIGN(const CounterReport details,
                         ReadData("h200/" + name + ".ncu.details.csv"));
    ASSERT_EQ(raw.launches.size(), details.launches.size());
    size_t compared = 0;
    for (size_t i = 0; i < raw.launches.size(); ++i) {
      ASSERT_EQ(raw.launches[i].id, details.launches[i].id);
      for (const auto& [key, printed] : details.launches[i].printed_names) {
        const auto value = details.launches[i].values.find(key);
        if (value == details.launches[i].values.end()) continue;
        const auto exact = raw.launches[i].values.find(key);
        ASSERT_NE(exact, raw.launches[i].values.end()) << printed << " -> " << key;
        EXPECT_EQ(value->second.unit, exact->second.unit) << printed;
        // Two decimals on the details page, six on the raw one.
        EXPECT_NEAR(value->second.value, exact->second.value,
                    HalfDigit(value->second.unit_scale, 2) + HalfDigit(exact->second.unit_scale, 6))
            << name << " launch " << raw.launches[i].id << " " << printed;
        ++compared;
      }
    }
    EXPECT_GT(compared, 30u * raw.launches.size());
  }
}

TEST(NcuNamesTest, TheTableIsChecked) {
  EXPECT_GT(BuiltInNcuNames().raw_by_printed().size(), 40u);
  EXPECT_EQ(BuiltInNcuNames().RawName("Occupancy/Achieved Occupancy"),
            "sm__warps_active.avg.pct_of_peak_sustained_active");
  EXPECT_EQ(BuiltInNcuNames().RawName("Occupancy/No Such Name"), "");
  EXPECT_THAT(NcuNames::Parse("names: [{raw: a, printed: [x]}, {raw: b, printed: [x]}]").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'x' occurs twice")));
  EXPECT_THAT(NcuNames::Parse("names: 3").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("list")));
}

}  // namespace
}  // namespace solward::readers
