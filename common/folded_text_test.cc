#include "common/folded_text.h"

#include <gtest/gtest.h>

namespace solward {
namespace {

TEST(FoldedText, RemovesAccentsCaseAndTypography) {
  EXPECT_EQ(
      FoldedText("D\u2019abord, l\u2019\u00c9TAPE \u2013 \u00ab\u00a0fen\u00eatre\u00a0\u00bb")
          .lower(),
      "d'abord, l'etape - \" fenetre \"");
  EXPECT_EQ(FoldedText("\u00c9cole").plain(), "Ecole");
  EXPECT_EQ(FoldedText("4096\u00d74096").lower(), "4096x4096");
  EXPECT_EQ(FoldedText("6,9\u00b710\u00b9\u00b2 \u00b5s").lower(), "6,9*10^12 us");
}

TEST(FoldedText, FindsTheBytesAsWritten) {
  const std::string written = "a \u00e9t\u00e9 68,72\u202fGFLOP";
  const FoldedText text(written);
  ASSERT_EQ(text.lower(), "a ete 68,72 gflop");
  EXPECT_EQ(text.Original(2, 5), "\u00e9t\u00e9");
  EXPECT_EQ(text.Original(6, text.size()), "68,72\u202fGFLOP");
  EXPECT_EQ(text.OriginalOffset(5), written.find(" 68"));
  EXPECT_TRUE(text.IsNoBreakSpace(11));
  EXPECT_FALSE(text.IsNoBreakSpace(5));
}

TEST(FoldedText, NeverCutsACharacterThatFoldsToSeveral) {
  const FoldedText text("c\u0153ur");
  ASSERT_EQ(text.lower(), "coeur");
  EXPECT_EQ(text.Original(0, 2), "c\u0153");
}

TEST(FoldedText, TakesBrokenUtf8) {
  EXPECT_EQ(FoldedText("a\xc3").size(), 2u);
  EXPECT_EQ(FoldedText("\xff\xe2\x82").size(), 3u);
  EXPECT_EQ(FoldedText("").lower(), "");
}

}  // namespace
}  // namespace solward
