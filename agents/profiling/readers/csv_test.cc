#include "agents/profiling/readers/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status_matchers.h"

namespace solward::readers {
namespace {

using ::solward::testing::IsOkAndHolds;
using ::solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CsvRecordsTest, QuotesCommasAndLineBreaksStayInsideAField) {
  CsvRecords reader("\"a\",\"1,205.00\",\"say \"\"hi\"\"\"\r\n\"two\nlines\",,last\n");
  std::vector<std::string> fields;
  ASSERT_TRUE(reader.Next(&fields));
  EXPECT_THAT(fields, ElementsAre("a", "1,205.00", "say \"hi\""));
  EXPECT_EQ(reader.line(), 1u);
  ASSERT_TRUE(reader.Next(&fields));
  EXPECT_THAT(fields, ElementsAre("two\nlines", "", "last"));
  EXPECT_EQ(reader.line(), 2u);
  EXPECT_FALSE(reader.Next(&fields));
  EXPECT_FALSE(reader.unterminated());
}

TEST(CsvRecordsTest, AFileThatEndsInsideQuotesIsNoticed) {
  CsvRecords reader("\"a\",\"cut of");
  std::vector<std::string> fields;
  ASSERT_TRUE(reader.Next(&fields));
  EXPECT_THAT(fields, ElementsAre("a", "cut of"));
  EXPECT_TRUE(reader.unterminated());
}

TEST(CsvRecordsTest, ALineOfTheProgramIsTakenWithoutLookingAtItsQuotes) {
  CsvRecords reader("it's a \"line\n\"0\",\"1\"\n");
  absl::string_view line;
  EXPECT_EQ(reader.Peek(), 'i');
  ASSERT_TRUE(reader.NextLine(&line));
  EXPECT_EQ(line, "it's a \"line");
  std::vector<std::string> fields;
  ASSERT_TRUE(reader.Next(&fields));
  EXPECT_THAT(fields, ElementsAre("0", "1"));
}

TEST(ToUtf8Test, Utf16OfEitherOrderAndMarksAreUndone) {
  EXPECT_EQ(ToUtf8(std::string("\xff\xfe\"\0I\0\xb5\0", 8)), "\"I\xc2\xb5");
  EXPECT_EQ(ToUtf8(std::string("\xfe\xff\0I\0D", 6)), "ID");
  EXPECT_EQ(ToUtf8(std::string("I\0D\0,\0", 6)), "ID,");
  EXPECT_EQ(ToUtf8("\xef\xbb\xbfID"), "ID");
  EXPECT_EQ(ToUtf8("ID"), "ID");
}

absl::StatusOr<bool> StyleOf(std::initializer_list<absl::string_view> numbers) {
  NumberStyle style;
  for (absl::string_view number : numbers) style.See(number);
  return style.DecimalComma("x.csv");
}

TEST(NumberStyleTest, IsToldFromAllNumbersOfAFile) {
  EXPECT_THAT(StyleOf({"1,205.00", "117,344"}), IsOkAndHolds(false));
  EXPECT_THAT(StyleOf({"3.20", "1,234"}), IsOkAndHolds(false));
  EXPECT_THAT(StyleOf({"117.344", "65,77"}), IsOkAndHolds(true));
  EXPECT_THAT(StyleOf({"1.234.567"}), IsOkAndHolds(true));
  EXPECT_THAT(StyleOf({"1.234,5"}), IsOkAndHolds(true));
  EXPECT_THAT(StyleOf({"0.123"}), IsOkAndHolds(false));
  EXPECT_THAT(StyleOf({"12", "1,234", "all"}), IsOkAndHolds(false));
  EXPECT_THAT(StyleOf({"580.159.04", "3.5"}), IsOkAndHolds(false));
}

TEST(NumberStyleTest, WhatMayBeEitherIsRefusedNotGuessed) {
  EXPECT_THAT(StyleOf({"117.344", "12"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("x.csv"), HasSubstr("117.344"), HasSubstr("LC_ALL=C"))));
  EXPECT_THAT(StyleOf({"3.20", "65,77"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                   AllOf(HasSubstr("3.20"), HasSubstr("65,77"))));
}

TEST(IsNoValueTest, KnowsTheWordsOfTheTools) {
  for (const char* text :
       {"", " ", "n/a", "N/A", "[N/A]", "nan", "-nan", "inf", "no data", "ERR!", "[Not Supported]",
        "[Unknown Error]", "[Insufficient Permissions]", "[GPU requires reset]", "None"}) {
    EXPECT_TRUE(IsNoValue(text)) << text;
  }
  for (const char* text : {"0", "0.00", "all", "nano"}) EXPECT_FALSE(IsNoValue(text)) << text;
}

}  // namespace
}  // namespace solward::readers
