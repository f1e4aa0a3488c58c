#include "common/classification_parameters.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/embedded_config.h"
#include "common/status_matchers.h"

namespace solward {
namespace {

using ::solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// The built-in text with one thing replaced; it must be there.
absl::StatusOr<ClassificationParameters> ParseWith(absl::string_view from, absl::string_view to) {
  const std::string text(*EmbeddedConfig("classification.yaml"));
  const std::string changed = absl::StrReplaceAll(text, {{from, to}});
  EXPECT_NE(changed, text) << from;
  return ParseClassificationParameters(changed);
}

TEST(ClassificationParametersTest, BuiltInValuesAreThoseOfTheTimeModel) {
  const ClassificationParameters& parameters = BuiltInClassificationParameters();
  EXPECT_EQ(parameters.floor_percent, 20);
  EXPECT_EQ(parameters.limit_threshold_percent, 60);
  EXPECT_EQ(parameters.limit_margin_percent, 10);
  EXPECT_EQ(parameters.launch_call_ns, 2'000);
  EXPECT_EQ(parameters.synchronization_ns, 5'000);
  EXPECT_EQ(parameters.host_stretch_ns, 200'000);
  EXPECT_EQ(parameters.long_host_stretch_ns, 1'000'000);
  EXPECT_EQ(parameters.flops_disagreement_percent, 1);
}

TEST(ClassificationParametersTest, AValueOfTheFileReplacesTheDefault) {
  const auto parameters = ParseWith("floor_percent: {value: 20,", "floor_percent: {value: 15.5,");
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  EXPECT_EQ(parameters->floor_percent, 15.5);
}

TEST(ClassificationParametersTest, AMissingOrUnknownNameIsAnError) {
  EXPECT_THAT(ParseWith("floor_percent:", "flor_percent:"),
              StatusIs(kInvalid, HasSubstr("expected key \"floor_percent\"")));
  const std::string more =
      absl::StrCat(*EmbeddedConfig("classification.yaml"), "extra: {value: 1, why: x}\n");
  EXPECT_THAT(ParseClassificationParameters(more),
              StatusIs(kInvalid, HasSubstr("unknown key \"extra\"")));
}

TEST(ClassificationParametersTest, EveryValueNeedsItsReason) {
  EXPECT_THAT(ParseClassificationParameters("floor_percent: {value: 20}"),
              StatusIs(kInvalid, AllOf(HasSubstr("floor_percent"), HasSubstr("\"why\""))));
}

TEST(ClassificationParametersTest, ValuesOutOfRangeAreErrors) {
  EXPECT_THAT(ParseWith("{value: 20,", "{value: 100,"), StatusIs(kInvalid, HasSubstr("[0, 100)")));
  EXPECT_THAT(ParseWith("{value: 20,", "{value: -1,"), StatusIs(kInvalid, HasSubstr("[0, 100)")));
  EXPECT_THAT(ParseWith("{value: 2000,", "{value: 0,"),
              StatusIs(kInvalid, HasSubstr("launch_call_ns")));
  EXPECT_THAT(ParseWith("{value: 2000,", "{value: .nan,"),
              StatusIs(kInvalid, HasSubstr("finite number")));
  EXPECT_THAT(ParseWith("{value: 2000,", "{value: two,"),
              StatusIs(kInvalid, HasSubstr("finite number")));
  EXPECT_THAT(ParseWith("{value: 1000000,", "{value: 100000,"),
              StatusIs(kInvalid, HasSubstr("at least host_stretch_ns")));
}

TEST(ClassificationParametersTest, WhatIsNotAMapIsAnError) {
  EXPECT_THAT(ParseClassificationParameters(""), StatusIs(kInvalid, HasSubstr("classification")));
  EXPECT_THAT(ParseClassificationParameters("[1, 2]"), StatusIs(kInvalid, HasSubstr("map")));
  EXPECT_THAT(ParseClassificationParameters("a: {b: [}"), StatusIs(kInvalid, HasSubstr("YAML")));
}

}  // namespace
}  // namespace solward
