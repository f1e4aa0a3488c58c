#include "common/units.h"

#include <cmath>

#include "common/status_matchers.h"

namespace solward {
namespace {

using ::solward::testing::IsOkAndHolds;
using ::solward::testing::StatusIs;
using ::testing::DoubleEq;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr char kThin[] = "\xE2\x80\xAF";  // U+202F

void ExpectUnit(absl::string_view printed, absl::string_view unit, double scale) {
  const UnitScale got = ToBaseUnit(printed);
  EXPECT_EQ(got.unit, unit) << printed;
  EXPECT_DOUBLE_EQ(got.scale, scale) << printed;
}

TEST(ToBaseUnitTest, Times) {
  for (const char* s : {"ns", "nsecond"}) ExpectUnit(s, "ns", 1);
  for (const char* s : {"us", "usecond", "\xC2\xB5s", "\xCE\xBCs"}) ExpectUnit(s, "ns", 1e3);
  for (const char* s : {"ms", "msecond", " ms "}) ExpectUnit(s, "ns", 1e6);
  for (const char* s : {"s", "second", "sec", "secondes"}) ExpectUnit(s, "ns", 1e9);
  ExpectUnit("min", "ns", 60e9);
}

TEST(ToBaseUnitTest, Frequencies) {
  for (const char* s : {"hz", "Hz", "cycle/second"}) ExpectUnit(s, "Hz", 1);
  for (const char* s : {"Khz", "kHz"}) ExpectUnit(s, "Hz", 1e3);
  for (const char* s : {"Mhz", "MHz", "cycle/usecond"}) ExpectUnit(s, "Hz", 1e6);
  for (const char* s : {"Ghz", "GHz", "cycle/nsecond"}) ExpectUnit(s, "Hz", 1e9);
}

TEST(ToBaseUnitTest, NcuBytesAreDecimal) {
  ExpectUnit("byte", "By", 1);
  ExpectUnit("Kbyte", "By", 1e3);
  ExpectUnit("Mbyte", "By", 1e6);
  ExpectUnit("Gbyte", "By", 1e9);
  ExpectUnit("Tbyte", "By", 1e12);
}

TEST(ToBaseUnitTest, OtherBytes) {
  ExpectUnit("B", "By", 1);
  for (const char* s : {"kB", "KB", "ko", "Ko"}) ExpectUnit(s, "By", 1e3);
  for (const char* s : {"GB", "Go"}) ExpectUnit(s, "By", 1e9);
  for (const char* s : {"To", "TB"}) ExpectUnit(s, "By", 1e12);
  for (const char* s : {"KiB", "Kio"}) ExpectUnit(s, "By", 1024);
  for (const char* s : {"MiB", "Mio"}) ExpectUnit(s, "By", 1048576);
  for (const char* s : {"GiB", "Gio"}) ExpectUnit(s, "By", 1073741824);
}

TEST(ToBaseUnitTest, Bandwidths) {
  ExpectUnit("byte/s", "By/s", 1);
  ExpectUnit("byte/second", "By/s", 1);
  ExpectUnit("byte/nsecond", "By/s", 1e9);
  for (const char* s : {"Gbyte/s", "GB/s", "Go/s", "Gbyte/second"}) ExpectUnit(s, "By/s", 1e9);
  for (const char* s : {"Tbyte/s", "TB/s", "To/s"}) ExpectUnit(s, "By/s", 1e12);
  ExpectUnit("MB/s", "By/s", 1e6);
  ExpectUnit("MiB/s", "By/s", 1048576);
}

TEST(ToBaseUnitTest, Flops) {
  for (const char* s : {"FLOP", "flop", "FLOPs"}) ExpectUnit(s, "{FLOP}", 1);
  for (const char* s : {"GFLOP", "GFLOPs", "gflop"}) ExpectUnit(s, "{FLOP}", 1e9);
  ExpectUnit("TFLOP", "{FLOP}", 1e12);
  ExpectUnit("PFLOP", "{FLOP}", 1e15);
  for (const char* s : {"TFLOP/s", "TFLOPs/s", "TFLOPS"}) ExpectUnit(s, "{FLOP}/s", 1e12);
  ExpectUnit("FLOP/byte", "{FLOP}/By", 1);
}

TEST(ToBaseUnitTest, TheRest) {
  ExpectUnit("W", "W", 1);
  ExpectUnit("mW", "W", 1e-3);
  for (const char* s : {"C",
                        "\xC2\xB0"
                        "C"})
    ExpectUnit(s, "Cel", 1);
  ExpectUnit("%", "%", 1);
  ExpectUnit("", "1", 1);
}

TEST(ToBaseUnitTest, WhatIsUnknownIsKept) {
  for (const char* s : {"inst/cycle", "register/thread", "Kbyte/block", "warp", "sector", "Gb/s",
                        "%/register", "cycle", "b", "SM", "/", "s/", "/s", "kkB", "Foo"}) {
    ExpectUnit(s, s, 1);
  }
}

TEST(ParseNumberTest, EnglishGroups) {
  EXPECT_THAT(ParseNumber("1,205.00"), IsOkAndHolds(1205.0));
  EXPECT_THAT(ParseNumber("153,192"), IsOkAndHolds(153192.0));
  EXPECT_THAT(ParseNumber("1,000,000"), IsOkAndHolds(1e6));
  EXPECT_THAT(ParseNumber("3.20"), IsOkAndHolds(3.2));
  EXPECT_THAT(ParseNumber("-3e5"), IsOkAndHolds(-3e5));
  EXPECT_THAT(ParseNumber("+1.5E-3"), IsOkAndHolds(1.5e-3));
  EXPECT_THAT(ParseNumber(" 7 "), IsOkAndHolds(7.0));
  EXPECT_THAT(ParseNumber("1 247"), IsOkAndHolds(1247.0));
  EXPECT_THAT(ParseNumber(".5"), IsOkAndHolds(0.5));
}

TEST(ParseNumberTest, FrenchDecimals) {
  EXPECT_THAT(ParseNumber("68,72", true), IsOkAndHolds(68.72));
  EXPECT_THAT(ParseNumber("1 247", true), IsOkAndHolds(1247.0));
  EXPECT_THAT(ParseNumber(std::string("1") + kThin + "247,5", true), IsOkAndHolds(1247.5));
  EXPECT_THAT(ParseNumber("1\xC2\xA0"
                          "247",
                          true),
              IsOkAndHolds(1247.0));
  EXPECT_THAT(ParseNumber("1.205,5", true), IsOkAndHolds(1205.5));
  EXPECT_THAT(ParseNumber("68.72", true), IsOkAndHolds(68.72));
  EXPECT_THAT(ParseNumber("-0,5e3", true), IsOkAndHolds(-500.0));
}

TEST(ParseNumberTest, WhatIsNoNumberIsNamed) {
  for (const char* bad :
       {"",       " ",    "n/a",   "nan",  "inf",       "-inf",    "0x10",  "1,2,3",
        "12,34",  "1,20", "1.2.3", "1..2", "--1",       "1e",      "1e400", "1 2",
        "1,,000", ",5",   "e5",    "-",    "1,000 000", "1.5,000", "0,500", "1234,567"}) {
    EXPECT_THAT(ParseNumber(bad), StatusIs(kInvalid, HasSubstr(bad))) << bad;
  }
  for (const char* bad : {"1,2,3", "1,5.2", "", ","}) {
    EXPECT_THAT(ParseNumber(bad, true), StatusIs(kInvalid, HasSubstr(bad))) << bad;
  }
  EXPECT_FALSE(ParseNumber(std::string(100'000, '1')).ok());
}

TEST(ParseQuantityTest, TakesTheUnitThatIsThere) {
  EXPECT_THAT(ParseQuantity("24 ms", "ns", "ms"), IsOkAndHolds(24e6));
  EXPECT_THAT(ParseQuantity("0.5s", "ns", "ms"), IsOkAndHolds(0.5e9));
  EXPECT_THAT(ParseQuantity("1,205 us", "ns", "ms"), IsOkAndHolds(1205e3));
  EXPECT_THAT(ParseQuantity("68.72GFLOP", "{FLOP}", "FLOP"), IsOkAndHolds(DoubleEq(68.72e9)));
  EXPECT_THAT(ParseQuantity("68,72 GFLOP", "{FLOP}", "FLOP"), IsOkAndHolds(DoubleEq(68.72e9)));
  EXPECT_THAT(ParseQuantity("0,500 s", "ns", "ms"), IsOkAndHolds(0.5e9))
      << "no group of thousands starts with 0";
  EXPECT_THAT(ParseQuantity("2.5e3 ns", "ns", "ms"), IsOkAndHolds(2500.0));
  EXPECT_THAT(ParseQuantity("3\xE2\x80\xAF"
                            "350 GB/s",
                            "By/s", "GB/s"),
              IsOkAndHolds(3.35e12));
}

TEST(ParseQuantityTest, WithoutAUnitTheDefaultHolds) {
  EXPECT_THAT(ParseQuantity("24", "ns", "ms"), IsOkAndHolds(24e6));
  EXPECT_THAT(ParseQuantity("68.72e9", "{FLOP}", "FLOP"), IsOkAndHolds(68.72e9));
  EXPECT_THAT(ParseQuantity("32", "{sample}", "{sample}"), IsOkAndHolds(32.0));
}

TEST(ParseQuantityTest, FlopsMeansAnAmountWhereOneIsWanted) {
  EXPECT_THAT(ParseQuantity("68 GFLOPS", "{FLOP}", "FLOP"), IsOkAndHolds(68e9));
  EXPECT_THAT(ParseQuantity("68 GFLOPs", "{FLOP}", "FLOP"), IsOkAndHolds(68e9));
  EXPECT_THAT(ParseQuantity("989 TFLOPS", "{FLOP}/s", "FLOP/s"), IsOkAndHolds(989e12));
  EXPECT_THAT(ParseQuantity("989 TFLOPs", "{FLOP}/s", "FLOP/s"), IsOkAndHolds(989e12));
  EXPECT_THAT(ParseQuantity("68 GFLOP/s", "{FLOP}", "FLOP"),
              StatusIs(kInvalid, HasSubstr("GFLOP/s")));
}

TEST(ParseQuantityTest, CountsTakeWordsAndThousands) {
  EXPECT_THAT(ParseQuantity("7B", "{parameter}", "{parameter}"), IsOkAndHolds(7e9));
  EXPECT_THAT(ParseQuantity("1.3 G parameters", "{parameter}", "{parameter}"), IsOkAndHolds(1.3e9));
  EXPECT_THAT(ParseQuantity("32 samples", "{sample}", "{sample}"), IsOkAndHolds(32.0));
  EXPECT_THAT(ParseQuantity("32 \xC3\xA9"
                            "chantillons",
                            "{sample}", "{sample}"),
              IsOkAndHolds(32.0));
  EXPECT_THAT(ParseQuantity("4k tokens", "{token}", "{token}"), IsOkAndHolds(4000.0));
}

TEST(ParseQuantityTest, AnotherFamilyIsNamed) {
  EXPECT_THAT(ParseQuantity("24 GB", "ns", "ms"),
              StatusIs(kInvalid, ::testing::AllOf(HasSubstr("ns"), HasSubstr("GB"))));
  EXPECT_THAT(ParseQuantity("32 tokens", "{sample}", "{sample}"),
              StatusIs(kInvalid, HasSubstr("tokens")));
  for (const char* bad : {"", "ms", "fast", "1e400 ms", "nan ms", "- 3 ms", "1 2 ms"}) {
    EXPECT_THAT(ParseQuantity(bad, "ns", "ms"), StatusIs(kInvalid, HasSubstr("expected"))) << bad;
  }
}

struct Printed {
  double value;
  const char* unit;
  bool si;
  int decimals;
  const char* english;
  std::string french;
};

class FormatQuantityTest : public ::testing::TestWithParam<Printed> {};

TEST_P(FormatQuantityTest, InBothLanguages) {
  const Printed& p = GetParam();
  EXPECT_EQ(FormatQuantity(p.value, p.unit, p.si, p.decimals, Language::kEnglish), p.english);
  EXPECT_EQ(FormatQuantity(p.value, p.unit, p.si, p.decimals, Language::kFrench), p.french);
}

INSTANTIATE_TEST_SUITE_P(
    Units, FormatQuantityTest,
    ::testing::Values(Printed{69.24, "%", false, 1, "69.2 %", "69,2 %"},
                      Printed{0.84, "1", false, 2, "0.84", "0,84"},
                      Printed{3.4e12, "By/s", true, 2, "3.40 TB/s", "3,40 To/s"},
                      Printed{1.5e9, "By", true, 2, "1.50 GB", "1,50 Go"},
                      Printed{512, "By", true, 0, "512 B", "512 o"},
                      Printed{1.5e9, "Hz", true, 2, "1.50 GHz", "1,50 GHz"},
                      Printed{684.8e12, "{FLOP}/s", true, 1, "684.8 TFLOP/s", "684,8 TFLOP/s"},
                      Printed{68.72e9, "{FLOP}", true, 2, "68.72 GFLOP", "68,72 GFLOP"},
                      Printed{207.5, "{FLOP}/By", false, 1, "207.5 FLOP/B", "207,5 FLOP/o"},
                      Printed{700, "W", false, 0, "700 W", "700 W"},
                      Printed{41, "Cel", false, 0,
                              "41 \xC2\xB0"
                              "C",
                              "41 \xC2\xB0"
                              "C"},
                      Printed{2.5, "furlong", false, 1, "2.5 furlong", "2,5 furlong"}));

INSTANTIATE_TEST_SUITE_P(
    Times, FormatQuantityTest,
    ::testing::Values(Printed{100'360, "ns", true, 1, "100.4 \xC2\xB5s", "100,4 \xC2\xB5s"},
                      Printed{999, "ns", true, 2, "999.00 ns", "999,00 ns"},
                      Printed{0.5, "ns", true, 2, "0.50 ns", "0,50 ns"},
                      Printed{24e6, "ns", true, 2, "24.00 ms", "24,00 ms"},
                      Printed{-24e6, "ns", true, 2, "-24.00 ms", "-24,00 ms"},
                      Printed{3.2e12, "ns", true, 1, "3,200.0 s",
                              std::string("3") + kThin + "200,0 s"},
                      Printed{2'300'000, "ns", false, 0, "2,300,000 ns",
                              std::string("2") + kThin + "300" + kThin + "000 ns"}));

// The prefix is chosen for the number that is printed: never "1000.0 µs".
INSTANTIATE_TEST_SUITE_P(Prefixes, FormatQuantityTest,
                         ::testing::Values(Printed{999'960, "ns", true, 1, "1.0 ms", "1,0 ms"},
                                           Printed{999'940, "ns", true, 1, "999.9 \xC2\xB5s",
                                                   "999,9 \xC2\xB5s"},
                                           Printed{1e6, "ns", true, 1, "1.0 ms", "1,0 ms"},
                                           Printed{999.6, "By", true, 0, "1 kB", "1 ko"},
                                           Printed{2e18, "{FLOP}", true, 0, "2,000 PFLOP",
                                                   std::string("2") + kThin + "000 PFLOP"},
                                           Printed{0, "By", true, 2, "0.00 B", "0,00 o"},
                                           Printed{123456, "%", true, 0, "123,456 %",
                                                   std::string("123") + kThin + "456 %"}));

INSTANTIATE_TEST_SUITE_P(
    Counts, FormatQuantityTest,
    ::testing::Values(Printed{2045, "{kernel}", false, 0, "2,045 kernels",
                              std::string("2") + kThin + "045 noyaux"},
                      Printed{1, "{kernel}", false, 0, "1 kernel", "1 noyau"},
                      Printed{0, "{kernel}", false, 0, "0 kernels", "0 noyau"},
                      Printed{1.2, "{call}", false, 0, "1 call", "1 appel"},
                      Printed{1.5, "{call}", false, 1, "1.5 calls", "1,5 appel"},
                      Printed{30, "{call}", false, 0, "30 calls", "30 appels"},
                      Printed{12, "{copy}", false, 0, "12 copies", "12 copies"},
                      Printed{32, "{sample}", false, 0, "32 samples",
                              "32 \xC3\xA9"
                              "chantillons"},
                      Printed{44.09, "{step}/s", false, 2, "44.09 steps/s", "44,09 pas/s"},
                      Printed{7e9, "{parameter}", true, 2, "7.00 G parameters",
                              "7,00 G param\xC3\xA8tres"},
                      Printed{3, "{widget}", false, 0, "3 widgets", "3 widgets"}));

// As printf and Python's format do: 0.125 is exact and goes to the even digit,
// 100.35 is 100.3499... in binary.
INSTANTIATE_TEST_SUITE_P(Rounding, FormatQuantityTest,
                         ::testing::Values(Printed{0.125, "1", false, 2, "0.12", "0,12"},
                                           Printed{0.375, "1", false, 2, "0.38", "0,38"},
                                           Printed{2.5, "1", false, 0, "2", "2"},
                                           Printed{100'350, "ns", true, 1, "100.3 \xC2\xB5s",
                                                   "100,3 \xC2\xB5s"},
                                           Printed{-0.001, "%", false, 1, "0.0 %", "0,0 %"}));

TEST(FormatQuantityTest, WhatIsNotFiniteIsNoNumber) {
  EXPECT_EQ(FormatQuantity(std::nan(""), "ns", true, 1, Language::kEnglish), "?");
  EXPECT_EQ(FormatQuantity(INFINITY, "ns", true, 1, Language::kEnglish), "?");
}

}  // namespace
}  // namespace solward
