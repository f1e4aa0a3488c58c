#include "common/text.h"

#include <gtest/gtest.h>

namespace solward {
namespace {

TEST(CleanUtf8Test, KeepsWhatIsFine) {
  EXPECT_EQ(CleanUtf8("noyau \xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x9A\x80\tx\n"),
            "noyau \xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x9A\x80\tx\n");
  EXPECT_EQ(CleanUtf8(""), "");
}

TEST(CleanUtf8Test, ReplacesEveryByteThatIsNotUtf8) {
  EXPECT_EQ(CleanUtf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(CleanUtf8("\xC3"), "\xEF\xBF\xBD") << "cut sequence";
  EXPECT_EQ(CleanUtf8("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "overlong slash";
  EXPECT_EQ(CleanUtf8("\xE0\x80\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "overlong";
  EXPECT_EQ(CleanUtf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "surrogate";
  EXPECT_EQ(CleanUtf8("\xF4\x90\x80\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD")
      << "beyond U+10FFFF";
}

TEST(CleanUtf8Test, ControlCharactersBecomeSpaces) {
  EXPECT_EQ(CleanUtf8("a\x1B[31mb\r\n\x7F"), "a [31mb \n ");
  EXPECT_EQ(CleanUtf8(absl::string_view("a\0b", 3)), "a b");
  EXPECT_EQ(CleanUtf8("\xC2\x9B"
                      "31m"),
            " 31m")
      << "a C1 control";
}

TEST(TruncateTest, LeavesShortTextAlone) {
  EXPECT_EQ(Truncate("abcdef", 6), "abcdef");
  EXPECT_EQ(Truncate("", 0), "");
}

TEST(TruncateTest, CutsAtACharacterBorderAndSaysSo) {
  EXPECT_EQ(Truncate("abcdefgh", 6), "abc\xE2\x80\xA6");
  EXPECT_EQ(Truncate("a\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 7), "a\xC3\xA9\xE2\x80\xA6")
      << "the second accent would be cut in two";
}

TEST(TruncateTest, NeverGivesMoreThanAsked) {
  for (size_t max = 0; max < 12; ++max) {
    EXPECT_LE(Truncate("\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", max).size(), max);
  }
}

}  // namespace
}  // namespace solward
