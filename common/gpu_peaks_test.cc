#include "common/gpu_peaks.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status_matchers.h"

namespace solward {
namespace {

using ::solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr uint64_t kMiB = 1 << 20;

v1::Gpu Device(absl::string_view name, int major, int minor, uint32_t sms, uint64_t bytes) {
  v1::Gpu gpu;
  gpu.set_name(std::string(name));
  gpu.set_compute_major(major);
  gpu.set_compute_minor(minor);
  gpu.set_sm_count(sms);
  gpu.set_memory_bytes(bytes);
  return gpu;
}

std::string Matched(const v1::Gpu& gpu) {
  const absl::StatusOr<const GpuPeak*> peak = BuiltInGpuPeaks().Match(gpu);
  return peak.ok() ? (*peak)->name : std::string(peak.status().message());
}

const GpuPeak& Row(absl::string_view name) {
  for (const GpuPeak& peak : BuiltInGpuPeaks().rows()) {
    if (peak.name == name) return peak;
  }
  ADD_FAILURE() << "no row " << name;
  static const GpuPeak none;
  return none;
}

// --- the figures, against the printed ones -----------------------------------

TEST(GpuPeaksTableTest, H200HasItsDenseFigures) {
  const GpuPeak& h200 = Row("H200-SXM");
  EXPECT_THAT(h200.PeakOf(v1::DTYPE_FP16), Optional(DoubleEq(989.4e12)));
  EXPECT_THAT(h200.PeakOf(v1::DTYPE_BF16), Optional(DoubleEq(989.4e12)));
  EXPECT_THAT(h200.PeakOf(v1::DTYPE_TF32), Optional(DoubleEq(494.7e12)));
  EXPECT_THAT(h200.PeakOf(v1::DTYPE_FP8), Optional(DoubleEq(1979e12)));
  EXPECT_THAT(h200.PeakOf(v1::DTYPE_INT8), Optional(DoubleEq(1979e12)));
  EXPECT_THAT(h200.dram_bytes_per_second, Optional(DoubleEq(4.8e12)));
  EXPECT_THAT(h200.nvlink_bytes_per_second, Optional(DoubleEq(900e9)));
  EXPECT_THAT(h200.boost_hz, Optional(DoubleEq(1.98e9)));
  EXPECT_THAT(h200.tensor_hz, Optional(DoubleEq(1.83e9)));
  EXPECT_EQ(h200.sm_count, 132u);
  EXPECT_EQ(h200.confidence, "A");
  EXPECT_NE(h200.source, "");
}

TEST(GpuPeaksTableTest, Fp32IsNotTensorAndFp64IsWhereThereAreTensorCores) {
  const GpuPeak& h200 = Row("H200-SXM");
  EXPECT_THAT(h200.PeakOf(v1::DTYPE_FP32), Optional(DoubleEq(67e12)));
  EXPECT_EQ(h200.ColumnOf(v1::DTYPE_FP32), "fp32");
  EXPECT_THAT(h200.PeakOf(v1::DTYPE_FP64), Optional(DoubleEq(67e12)));
  EXPECT_EQ(h200.ColumnOf(v1::DTYPE_FP64), "fp64_tc");
  const GpuPeak& v100 = Row("V100-SXM2");
  EXPECT_THAT(v100.PeakOf(v1::DTYPE_FP64), Optional(DoubleEq(7.8e12)));
  EXPECT_EQ(v100.ColumnOf(v1::DTYPE_FP64), "fp64");
  EXPECT_EQ(v100.ColumnOf(v1::DTYPE_FP16), "fp16_tc");
}

TEST(GpuPeaksTableTest, WhatAPartDoesNotHaveIsAbsent) {
  EXPECT_EQ(Row("V100-SXM2").PeakOf(v1::DTYPE_BF16), std::nullopt);
  EXPECT_EQ(Row("T4").PeakOf(v1::DTYPE_TF32), std::nullopt);
  EXPECT_EQ(Row("H200-SXM").PeakOf(v1::DTYPE_FP4), std::nullopt);
  EXPECT_EQ(Row("H200-SXM").PeakOf(v1::DTYPE_UNSPECIFIED), std::nullopt);
  EXPECT_EQ(Row("H200-SXM").ColumnOf(v1::DTYPE_UNSPECIFIED), "");
  EXPECT_EQ(Row("L4").nvlink_bytes_per_second, std::nullopt);
}

TEST(GpuPeaksTableTest, ARangeOrAQuestionMarkIsNoNumber) {
  const GpuPeak& gb200 = Row("GB200");
  EXPECT_EQ(gb200.sm_count, 0u) << "148-152";
  EXPECT_EQ(gb200.boost_hz, std::nullopt) << "?";
  EXPECT_EQ(gb200.tensor_hz, std::nullopt) << "2006-2062";
}

// A printed dense FP16 figure is SMs x FLOP per clock and SM x clock; a sparse
// one would be twice that.
TEST(GpuPeaksTableTest, NoFigureIsSparse) {
  const std::map<std::string, double> flop_per_clock = {
      {"7.0", 1024}, {"7.5", 1024}, {"8.0", 2048},  {"8.6", 1024},
      {"8.9", 1024}, {"9.0", 4096}, {"10.0", 8192}, {"12.0", 512}};
  for (const GpuPeak& peak : BuiltInGpuPeaks().rows()) {
    if (!peak.fp16.has_value() || !peak.tensor_hz.has_value() || peak.sm_count == 0) continue;
    const double arithmetic =
        peak.sm_count * flop_per_clock.at(peak.compute_capability) * *peak.tensor_hz;
    EXPECT_LE(*peak.fp16, arithmetic * 1.03) << peak.name;
  }
}

// --- which row a device gets -------------------------------------------------

TEST(GpuPeaksMatchTest, AnH200ByEveryToolsAccountOfIt) {
  EXPECT_EQ(Matched(Device("NVIDIA H200", 9, 0, 132, 150'109'880'320)), "H200-SXM");
  EXPECT_EQ(Matched(Device("NVIDIA H200", 9, 0, 0, 143'771 * kMiB)), "H200-SXM")
      << "nvidia-smi counts no SMs";
  EXPECT_EQ(Matched(Device("NVIDIA H200", 9, 0, 132, 0)), "H200-SXM");
}

TEST(GpuPeaksMatchTest, OtherDevicesByTheNamesTheyReport) {
  EXPECT_EQ(Matched(Device("NVIDIA H100 80GB HBM3", 9, 0, 132, 81'559 * kMiB)), "H100-SXM5");
  EXPECT_EQ(Matched(Device("NVIDIA H100 PCIe", 9, 0, 114, 81'559 * kMiB)), "H100-PCIe");
  EXPECT_EQ(Matched(Device("NVIDIA A100-SXM4-40GB", 8, 0, 108, 40'536 * kMiB)), "A100-SXM4-40GB");
  EXPECT_EQ(Matched(Device("NVIDIA A100-SXM4-80GB", 8, 0, 108, 81'920 * kMiB)), "A100-SXM4-80GB");
  EXPECT_EQ(Matched(Device("NVIDIA A100 80GB PCIe", 8, 0, 108, 81'920 * kMiB)), "A100-PCIE-80GB");
  EXPECT_EQ(Matched(Device("Tesla V100-SXM2-16GB", 7, 0, 80, 16'160 * kMiB)), "V100-SXM2");
  EXPECT_EQ(Matched(Device("Tesla V100-SXM2-32GB", 7, 0, 80, 32'510 * kMiB)), "V100-SXM2");
  EXPECT_EQ(Matched(Device("Tesla T4", 7, 5, 40, 15'360 * kMiB)), "T4");
  EXPECT_EQ(Matched(Device("NVIDIA A10G", 8, 6, 80, 23'028 * kMiB)), "A10G");
  EXPECT_EQ(Matched(Device("NVIDIA GeForce RTX 4090", 8, 9, 128, 24'564 * kMiB)), "RTX-4090");
  EXPECT_EQ(Matched(Device("NVIDIA B200", 10, 0, 148, 183'359 * kMiB)), "B200");
  EXPECT_EQ(Matched(Device("NVIDIA GB200", 10, 0, 152, 189'471 * kMiB)), "GB200");
}

TEST(GpuPeaksMatchTest, ThePropertyThatDoesNotFitIsNamed) {
  const auto match = [](const v1::Gpu& gpu) { return BuiltInGpuPeaks().Match(gpu).status(); };
  EXPECT_THAT(match(Device("NVIDIA H200", 9, 0, 132, 81'559 * kMiB)),
              StatusIs(kNotFound, AllOf(HasSubstr("no peak known for \"NVIDIA H200\""),
                                        HasSubstr("expected 141 GiB of memory, found 79.6 GiB"),
                                        HasSubstr("config/gpu_peaks.yaml"))));
  EXPECT_THAT(match(Device("NVIDIA H200", 9, 0, 60, 0)),
              StatusIs(kNotFound, HasSubstr("expected 132 SMs, found 60")));
  EXPECT_THAT(match(Device("NVIDIA H200", 8, 0, 132, 0)),
              StatusIs(kNotFound, HasSubstr("expected compute capability 9.0, found 8.0")));
  EXPECT_EQ(ErrorReason(match(Device("NVIDIA H200", 8, 0, 132, 0))), "PEAK_UNKNOWN");
  EXPECT_THAT(match(Device("Tesla V100-SXM2-32GB", 7, 0, 80, 24'000 * kMiB)),
              StatusIs(kNotFound, HasSubstr("expected 16 or 32 GiB")));
}

TEST(GpuPeaksMatchTest, ANameAloneOrNoNameIsNotEnough) {
  EXPECT_THAT(BuiltInGpuPeaks().Match(Device("NVIDIA H200", 0, 0, 0, 0)),
              StatusIs(kNotFound, HasSubstr("a name alone is not enough")));
  EXPECT_THAT(BuiltInGpuPeaks().Match(Device("", 9, 0, 132, 150'109'880'320)),
              StatusIs(kNotFound, HasSubstr("does not name the device")));
}

TEST(GpuPeaksMatchTest, NothingIsANearMatch) {
  for (const char* name : {"NVIDIA H200 NVL", "H200", "NVIDIA H20", "NVIDIA H100", "nvidia h200",
                           "NVIDIA H200 MIG 1g.18gb", "NVIDIA H100 80GB HBM2e", "NVIDIA H300",
                           "NVIDIA GeForce RTX 4090 D", "NVIDIA A800-SXM4-80GB"}) {
    EXPECT_THAT(BuiltInGpuPeaks().Match(Device(name, 9, 0, 132, 150'109'880'320)),
                StatusIs(kNotFound, HasSubstr("no row has this name")))
        << name;
  }
}

TEST(GpuPeaksMatchTest, APcieH100NeverGetsTheFiguresOfAnSxmOne) {
  for (const uint32_t sms : {0u, 114u, 132u}) {
    EXPECT_NE(Matched(Device("NVIDIA H100 PCIe", 9, 0, sms, 81'559 * kMiB)), "H100-SXM5") << sms;
  }
  EXPECT_NE(Matched(Device("NVIDIA H100 80GB HBM3", 9, 0, 114, 81'559 * kMiB)), "H100-SXM5");
}

// --- reading a table ---------------------------------------------------------

constexpr char kSmall[] = R"yaml(
gpus:
  - name: X1
    aliases: ["Maker X1"]
    cc: "9.0"
    sm: 10
    memory_gib: [16, 32]
    fp16_tc: 2.5
    confidence: "B"
    source: "data sheet"
)yaml";

absl::StatusOr<GpuPeaks> ParseWith(absl::string_view from, absl::string_view to) {
  const std::string changed = absl::StrReplaceAll(kSmall, {{from, to}});
  EXPECT_NE(changed, kSmall) << from;
  return GpuPeaks::Parse(changed);
}

TEST(GpuPeaksParseTest, ReadsARow) {
  ASSERT_OK_AND_ASSIGN(const GpuPeaks peaks, GpuPeaks::Parse(kSmall));
  ASSERT_EQ(peaks.rows().size(), 1u);
  const GpuPeak& row = peaks.rows()[0];
  EXPECT_THAT(row.PeakOf(v1::DTYPE_FP16), Optional(DoubleEq(2.5e12)));
  EXPECT_EQ(row.confidence, "B");
  EXPECT_EQ(row.source, "data sheet");
  const double gib = 1024.0 * kMiB;
  EXPECT_TRUE(row.MemoryFits(15.8 * gib));
  EXPECT_TRUE(row.MemoryFits(31.7 * gib));
  EXPECT_FALSE(row.MemoryFits(24 * gib)) << "between the two sizes";
  EXPECT_FALSE(row.MemoryFits(33 * gib));
}

TEST(GpuPeaksParseTest, WhatIsNoTableIsAnErrorThatNamesTheRow) {
  EXPECT_THAT(ParseWith("fp16_tc: 2.5", "fp16_tc: 2-3"),
              StatusIs(kInvalid, AllOf(HasSubstr("\"X1\""), HasSubstr("fp16_tc"))));
  EXPECT_THAT(ParseWith("fp16_tc: 2.5", "fp16_tc: \"?\""), StatusIs(kInvalid, HasSubstr("fp16")));
  EXPECT_THAT(ParseWith("fp16_tc: 2.5", "fp16_tc: 0"), StatusIs(kInvalid, HasSubstr("positive")));
  EXPECT_THAT(ParseWith("fp16_tc", "sparse_fp16"), StatusIs(kInvalid, HasSubstr("sparse_fp16")));
  EXPECT_THAT(ParseWith("[\"Maker X1\"]", "[]"), StatusIs(kInvalid, HasSubstr("aliases")));
  EXPECT_THAT(ParseWith("\"9.0\"", "nine"), StatusIs(kInvalid, HasSubstr("cc")));
  EXPECT_THAT(ParseWith("sm: 10", "sm: 1.5"), StatusIs(kInvalid, HasSubstr("sm")));
  EXPECT_THAT(ParseWith("[16, 32]", "[]"), StatusIs(kInvalid, HasSubstr("memory_gib")));
  EXPECT_THAT(ParseWith("\"B\"", "\"D\""), StatusIs(kInvalid, HasSubstr("confidence")));
  EXPECT_THAT(ParseWith("    source: \"data sheet\"\n", ""),
              StatusIs(kInvalid, HasSubstr("\"source\"")));
}

TEST(GpuPeaksParseTest, NamesAndAliasesAreUnique) {
  const std::string entry = std::string(kSmall).substr(std::string(kSmall).find("  - name"));
  EXPECT_THAT(GpuPeaks::Parse(absl::StrCat(kSmall, entry)),
              StatusIs(kInvalid, HasSubstr("\"X1\" is defined twice")));
  EXPECT_THAT(
      GpuPeaks::Parse(absl::StrCat(kSmall, absl::StrReplaceAll(entry, {{"name: X1", "name: X2"}}))),
      StatusIs(kInvalid, HasSubstr("alias \"Maker X1\"")));
}

// --- dtypes ------------------------------------------------------------------

TEST(DtypeTest, WordsOfFrameworksAreKnown) {
  for (const char* word : {"fp16", "FP16", "float16", "half", "Half", "torch.float16", " f16 ",
                           "torch.half", "c10::Half"}) {
    EXPECT_EQ(ParseDtype(word), v1::DTYPE_FP16) << word;
  }
  for (const char* word : {"bf16", "bfloat16", "torch.bfloat16", "c10::BFloat16"}) {
    EXPECT_EQ(ParseDtype(word), v1::DTYPE_BF16) << word;
  }
  EXPECT_EQ(ParseDtype("float"), v1::DTYPE_FP32);
  EXPECT_EQ(ParseDtype("TF32"), v1::DTYPE_TF32);
  EXPECT_EQ(ParseDtype("double"), v1::DTYPE_FP64);
  EXPECT_EQ(ParseDtype("float8_e4m3fn"), v1::DTYPE_FP8);
  EXPECT_EQ(ParseDtype("nvfp4"), v1::DTYPE_FP4);
  EXPECT_EQ(ParseDtype("int8"), v1::DTYPE_INT8);
}

TEST(DtypeTest, AnythingElseIsUnspecified) {
  for (const char* word : {"", "fp", "fp17", "int4", "bf", "float16x"}) {
    EXPECT_EQ(ParseDtype(word), v1::DTYPE_UNSPECIFIED) << word;
  }
}

TEST(DtypeTest, ANameReadsBackAsItsDtype) {
  for (int i = v1::Dtype_MIN; i <= v1::Dtype_MAX; ++i) {
    const auto dtype = static_cast<v1::Dtype>(i);
    EXPECT_EQ(ParseDtype(DtypeName(dtype)), dtype) << DtypeName(dtype);
  }
}

}  // namespace
}  // namespace solward
