#include "coordinator/report/messages.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/metric_catalogue.h"
#include "common/status_matchers.h"
#include "solward/v1/delegation.pb.h"
#include "solward/v1/metric.pb.h"

namespace solward::report {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Messages, ReadBothLanguagesAndTheirPlaceholders) {
  ASSERT_OK_AND_ASSIGN(const Messages messages,
                       Messages::Parse("a.b: {en: \"{x} of {y}\", fr: \"{y} et {x}\"}"));
  const Message* message = messages.Find("a.b");
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(message->In(Language::kFrench), "{y} et {x}");
  EXPECT_THAT(message->placeholders, ElementsAre("x", "y"));
  EXPECT_EQ(messages.Find("a"), nullptr);
}

TEST(Messages, ADigitInATextIsRefused) {
  EXPECT_THAT(Messages::Parse("a: {en: \"up to 2 times\", fr: \"le double\"}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("number")));
}

TEST(Messages, ADigitInCodeIsAName) {
  EXPECT_THAT(Messages::Parse("a: {en: \"use `bf16`\", fr: \"utiliser `bf16`\"}"), IsOk());
}

TEST(Messages, DifferentPlaceholdersAreRefused) {
  EXPECT_THAT(Messages::Parse("a: {en: \"{x}\", fr: \"{y}\"}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"a\"")));
}

TEST(Messages, AMissingLanguageIsRefused) {
  EXPECT_THAT(Messages::Parse("a: {en: \"x\"}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"a\"")));
  EXPECT_THAT(Messages::Parse("a: {en: \"x\", fr: \"\"}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"a\"")));
}

TEST(Messages, BrokenYamlIsRefusedWithoutAnException) {
  EXPECT_THAT(Messages::Parse("a: {en: "),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")));
  EXPECT_THAT(Messages::Parse("- a"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("map")));
}

TEST(SplitText, KeepsBracesThatAreNoPlaceholder) {
  const std::vector<TextPart> parts = SplitText("a {b} {c d} {");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].text, "b");
  EXPECT_TRUE(parts[1].is_placeholder);
  EXPECT_EQ(parts[2].text, " {c d} {");
}

// Every value of an enum that a report may say.
template <typename Describe>
void ExpectEveryValueHasAWord(const google::protobuf::EnumDescriptor* descriptor,
                              absl::string_view group, absl::string_view prefix, Describe skip) {
  for (int i = 0; i < descriptor->value_count(); ++i) {
    const std::string& name = descriptor->value(i)->name();
    if (skip(name)) continue;
    EXPECT_NE(BuiltInMessages().Find(EnumTerm(group, prefix, name)), nullptr) << name;
  }
}

TEST(BuiltInMessages, HaveAWordForEveryEnumValue) {
  const auto none = [](const std::string&) { return false; };
  ExpectEveryValueHasAWord(v1::BottleneckClass_descriptor(), "class", "BOTTLENECK_CLASS_", none);
  ExpectEveryValueHasAWord(v1::Confidence_descriptor(), "confidence", "CONFIDENCE_", none);
  ExpectEveryValueHasAWord(v1::UnmeasuredReason_descriptor(), "unmeasured", "UNMEASURED_REASON_",
                           none);
  ExpectEveryValueHasAWord(v1::Severity_descriptor(), "severity", "SEVERITY_", none);
  ExpectEveryValueHasAWord(v1::ParseSeverity_descriptor(), "parse_severity", "PARSE_SEVERITY_",
                           none);
  ExpectEveryValueHasAWord(v1::EffectBasis_descriptor(), "effect", "EFFECT_BASIS_", none);
  ExpectEveryValueHasAWord(v1::Aggregation_descriptor(), "provenance", "", none);
}

TEST(BuiltInMessages, KeepTheSeedsClassWordsInBothLanguages) {
  for (const char* word :
       {"compute-bound", "memory-bound", "launch-overhead", "communication-bound", "sync-bound",
        "host-bound", "transfer-bound", "latency-bound"}) {
    std::string id = absl::StrCat("class.", word);
    std::replace(id.begin(), id.end(), '-', '_');
    const Message* message = BuiltInMessages().Find(id);
    ASSERT_NE(message, nullptr) << id;
    EXPECT_EQ(message->en, word);
    EXPECT_EQ(message->fr, word);
  }
}

// Ids are strings in the stages' sources; one that the table lacks would fail
// only when a report needs it.
TEST(BuiltInMessages, HaveEveryIdThatTheSourcesName) {
  const char* source = std::getenv("SOLWARD_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "SOLWARD_SOURCE_DIR must name the source tree";
  const std::regex id(
      "\"((?:summary|finding|confidence|missing|plan|none|base|source|label|section|"
      "unmeasured|recommendation)\\.[a-z_.]*[a-z])\"");
  int found = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(source) + "/coordinator")) {
    const std::string path = entry.path().string();
    if (!absl::EndsWith(path, ".cc") || absl::EndsWith(path, "_test.cc")) continue;
    std::ifstream file(path);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (std::sregex_iterator it(text.begin(), text.end(), id), end; it != end; ++it) {
      EXPECT_NE(BuiltInMessages().Find((*it)[1].str()), nullptr) << (*it)[1] << " in " << path;
      ++found;
    }
  }
  EXPECT_GT(found, 80);
}

TEST(BuiltInMessages, KnowEveryFindingOfTheOtherStages) {
  for (const char* id :
       {"unpinned_copies", "synchronizations_per_step", "graph_level_trace_hides_kernels",
        "tool_rule", "tools_disagree", "profilers_slow_host_differently", "profiler_slows_host",
        "dilation_unmeasured", "mfu_impossible", "mfu_kernel_chosen", "mfu_over_all_ranks",
        "busy_dilated", "profiler_cost_small", "step_time_longer_than_profiled",
        "step_time_without_steps", "capture_unreadable", "delegation_unanswered"}) {
    EXPECT_NE(BuiltInMessages().Find(absl::StrCat("finding.", id)), nullptr) << id;
  }
}

}  // namespace
}  // namespace solward::report
