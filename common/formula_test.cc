#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/metric_catalogue.h"
#include "common/status_matchers.h"

namespace solward {
namespace {

using ::solward::testing::IsOkAndHolds;
using ::solward::testing::StatusIs;
using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFinite = absl::StatusCode::kFailedPrecondition;

TEST(EvaluateFormulaTest, FollowsTheUsualPrecedence) {
  EXPECT_THAT(EvaluateFormula("1 + 2 * 3", {}), IsOkAndHolds(7.0));
  EXPECT_THAT(EvaluateFormula("(1 + 2) * 3", {}), IsOkAndHolds(9.0));
  EXPECT_THAT(EvaluateFormula("10 - 4 - 3", {}), IsOkAndHolds(3.0));
  EXPECT_THAT(EvaluateFormula("100 / 5 / 2", {}), IsOkAndHolds(10.0));
  EXPECT_THAT(EvaluateFormula("2 * -3", {}), IsOkAndHolds(-6.0));
  EXPECT_THAT(EvaluateFormula("-(2 - 5)", {}), IsOkAndHolds(3.0));
  EXPECT_THAT(EvaluateFormula("--4", {}), IsOkAndHolds(4.0));
}

TEST(EvaluateFormulaTest, ReadsNumbersAsPeopleWriteThem) {
  EXPECT_THAT(EvaluateFormula("1e9", {}), IsOkAndHolds(1e9));
  EXPECT_THAT(EvaluateFormula("2.5e-3", {}), IsOkAndHolds(2.5e-3));
  EXPECT_THAT(EvaluateFormula(".5", {}), IsOkAndHolds(0.5));
}

TEST(EvaluateFormulaTest, KnowsMinAndMax) {
  EXPECT_THAT(EvaluateFormula("min(3, max(1, 2)) + max(a, b)", {{"a", 5}, {"b", 7}}),
              IsOkAndHolds(9.0));
  EXPECT_THAT(EvaluateFormula("min + max", {{"min", 1}, {"max", 2}}), IsOkAndHolds(3.0))
      << "without parentheses they are names";
}

// 2*32*512*1024*2048 FLOP in 100.35 us on 989.4 TFLOP/s: 68.72e9 / 100.35e-6 / 989.4e12.
TEST(EvaluateFormulaTest, ComputesAnMfu) {
  EXPECT_THAT(EvaluateFormula("flops / (time * 1e-9) / peak * 100",
                              {{"flops", 68.72e9}, {"time", 100350}, {"peak", 989.4e12}}),
              IsOkAndHolds(DoubleNear(69.21, 0.01)));
}

TEST(EvaluateFormulaTest, AnUnknownNameIsNamed) {
  EXPECT_THAT(EvaluateFormula("a + b", {{"a", 1}}), StatusIs(kInvalid, HasSubstr("\"b\"")));
}

TEST(EvaluateFormulaTest, SyntaxErrorsSayWhere) {
  for (const char* bad :
       {"",        "1 +",     "(1", "1)",     "1 2",   "a b",   "* 3",   "min(1)", "min(1, 2, 3)",
        "sqrt(4)", "2e",      "3x", "a ** b", "a.b",   "1..2",  "\"a\"", "a = 1",  "+1",
        "a;b",     "max(,1)", "()", "0x10",   "1e999", "nan(1)"}) {
    EXPECT_THAT(EvaluateFormula(bad, {{"a", 1}, {"b", 1}, {"x", 1}}),
                StatusIs(kInvalid, HasSubstr("at character")))
        << bad;
  }
}

TEST(EvaluateFormulaTest, AResultThatIsNotFiniteIsAnError) {
  EXPECT_THAT(EvaluateFormula("1 / a", {{"a", 0}}),
              StatusIs(kNotFinite, HasSubstr("division by zero")));
  EXPECT_THAT(EvaluateFormula("0 / a", {{"a", 0}}), StatusIs(kNotFinite, HasSubstr("zero")));
  EXPECT_THAT(EvaluateFormula("a * a", {{"a", 1e200}}),
              StatusIs(kNotFinite, HasSubstr("overflow")));
  EXPECT_THAT(EvaluateFormula("a", {{"a", std::nan("")}}), StatusIs(kNotFinite, HasSubstr("a")));
}

TEST(EvaluateFormulaTest, AnInfinityDoesNotVanishInAMinimum) {
  EXPECT_THAT(EvaluateFormula("min(1, 1 / a)", {{"a", 0}}),
              StatusIs(kNotFinite, HasSubstr("division by zero")));
}

TEST(EvaluateFormulaTest, DepthAndLengthAreBounded) {
  const auto nested = [](int depth) {
    return absl::StrCat(std::string(depth, '('), "1", std::string(depth, ')'));
  };
  EXPECT_THAT(EvaluateFormula(nested(64), {}), IsOkAndHolds(1.0));
  EXPECT_THAT(EvaluateFormula(nested(65), {}), StatusIs(kInvalid, HasSubstr("nested")));
  EXPECT_THAT(EvaluateFormula(std::string(4000, '(') + "1", {}),
              StatusIs(kInvalid, HasSubstr("nested")));
  EXPECT_THAT(EvaluateFormula(std::string(4095, '-') + "1", {}), IsOkAndHolds(-1.0));
  EXPECT_THAT(EvaluateFormula(std::string(5000, '-') + "1", {}),
              StatusIs(kInvalid, HasSubstr("4096")));
}

TEST(FormulaInputsTest, NamesInOrderOfFirstAppearance) {
  EXPECT_THAT(FormulaInputs("min(queued, max(0, step_time - busy)) / max(step_time, busy) * 1e2"),
              IsOkAndHolds(ElementsAre("queued", "step_time", "busy")));
  EXPECT_THAT(FormulaInputs("1 + 1"), IsOkAndHolds(ElementsAre()));
}

TEST(FormulaInputsTest, LooksAtTheSyntaxAlone) {
  EXPECT_THAT(FormulaInputs("1 / (a - a)"), IsOkAndHolds(ElementsAre("a")))
      << "no value is computed";
  EXPECT_THAT(FormulaInputs("1 / (a - "), StatusIs(kInvalid, HasSubstr("the end")));
}

}  // namespace
}  // namespace solward
