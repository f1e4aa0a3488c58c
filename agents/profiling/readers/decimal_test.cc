#include "agents/profiling/readers/decimal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace solward::readers {
namespace {

using ::testing::Eq;
using ::testing::Optional;

TEST(DecimalToInteger, KeepsDigitsThatADoubleLoses) {
  EXPECT_THAT(DecimalToInteger("5217457449772.717", 3), Optional(Eq(5217457449772717)));
  EXPECT_THAT(DecimalToInteger("1796074606728974.954", 3), Optional(Eq(1796074606728974954)));
}

TEST(DecimalToInteger, TakesWholeNumbersAndShortOrMissingFractions) {
  EXPECT_THAT(DecimalToInteger("12", 3), Optional(Eq(12000)));
  EXPECT_THAT(DecimalToInteger("12.5", 3), Optional(Eq(12500)));
  EXPECT_THAT(DecimalToInteger("12.", 3), Optional(Eq(12000)));
  EXPECT_THAT(DecimalToInteger(".5", 3), Optional(Eq(500)));
  EXPECT_THAT(DecimalToInteger("-3.25", 3), Optional(Eq(-3250)));
  EXPECT_THAT(DecimalToInteger("+7", 0), Optional(Eq(7)));
}

TEST(DecimalToInteger, RoundsHalfAwayFromZero) {
  EXPECT_THAT(DecimalToInteger("0.0004", 3), Optional(Eq(0)));
  EXPECT_THAT(DecimalToInteger("0.0005", 3), Optional(Eq(1)));
  EXPECT_THAT(DecimalToInteger("-0.0005", 3), Optional(Eq(-1)));
  EXPECT_THAT(DecimalToInteger("9.9996", 3), Optional(Eq(10000)));
}

TEST(DecimalToInteger, UnderstandsExponents) {
  EXPECT_THAT(DecimalToInteger("1.5e3", 3), Optional(Eq(1500000)));
  EXPECT_THAT(DecimalToInteger("1.5E+3", 0), Optional(Eq(1500)));
  EXPECT_THAT(DecimalToInteger("15e-1", 3), Optional(Eq(1500)));
  EXPECT_THAT(DecimalToInteger("1e-9", 3), Optional(Eq(0)));
}

TEST(DecimalToInteger, RefusesWhatIsNoFiniteNumberThatFits) {
  for (const char* text :
       {"", "-", ".", "abc", "1x", "1 2", "NaN", "Infinity", "-Infinity", "null", "1e", "1e999",
        "0x10", "9223372036854775808", "10159970886766084423", "--1", "1.2.3"}) {
    EXPECT_EQ(DecimalToInteger(text, 0), std::nullopt) << text;
  }
  EXPECT_EQ(DecimalToInteger("9223372036854775.808", 3), std::nullopt);
  EXPECT_THAT(DecimalToInteger("9223372036854775.807", 3), Optional(Eq(INT64_MAX)));
}

TEST(Unquoted, TakesQuotesAndSpaceBehindAway) {
  EXPECT_EQ(Unquoted("12 \n"), "12");
  EXPECT_EQ(Unquoted("\"stream 7\" "), "stream 7");
  EXPECT_EQ(Unquoted("\""), "\"");
  EXPECT_EQ(Unquoted(""), "");
}

}  // namespace
}  // namespace solward::readers
