#include "common/outcome_lint.h"

#include <yaml-cpp/yaml.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status_matchers.h"

namespace solward {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using solward::testing::IsOk;
using solward::testing::StatusIs;

std::string Describe(const std::vector<Offence>& offences) {
  std::string out;
  for (const Offence& o : offences) {
    absl::StrAppend(&out, "  ", OffenceKindName(o.kind), ": \"", o.words, "\" at ", o.offset, "\n");
  }
  return out.empty() ? "  nothing\n" : out;
}

bool OverlapsAnOccurrence(const std::string& text, const std::string& words, const Offence& o) {
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    if (o.offset < at + words.size() && at < o.offset + o.words.size()) return true;
  }
  return false;
}

bool Names(const std::vector<Offence>& offences, const std::string& text, const std::string& kind,
           const std::string& words) {
  for (const Offence& o : offences) {
    if (OffenceKindName(o.kind) == kind && OverlapsAnOccurrence(text, words, o)) return true;
  }
  return false;
}

YAML::Node Cases() {
  const char* root = std::getenv("SOLWARD_SOURCE_DIR");
  if (root == nullptr) {
    ADD_FAILURE() << "SOLWARD_SOURCE_DIR is not set";
    return YAML::Node(YAML::NodeType::Map);
  }
  return YAML::LoadFile(absl::StrCat(root, "/tests/data/outcome_lint_cases.yaml"));
}

// Written by someone who saw only the rules' text, not these patterns.
TEST(OutcomeLintCases, EveryCaseOfTheIndependentList) {
  const YAML::Node cases = Cases()["cases"];
  ASSERT_GE(cases.size(), 60u);
  for (const YAML::Node& c : cases) {
    const std::string text = c["text"].as<std::string>();
    const std::vector<Offence> offences = LintOutcomeText(text);
    SCOPED_TRACE(absl::StrCat(c["id"].as<std::string>(), ": ", text));
    if (c["offences"].size() == 0) {
      EXPECT_THAT(offences, IsEmpty()) << Describe(offences);
    }
    for (const YAML::Node& expected : c["offences"]) {
      const std::string kind = expected["kind"].as<std::string>();
      const std::string words = expected["words"].as<std::string>();
      EXPECT_TRUE(Names(offences, text, kind, words))
          << "expected " << kind << ": \"" << words << "\", found\n" << Describe(offences);
    }
  }
}

TEST(OutcomeLintCases, WordsAreAsWrittenAtTheirOffset) {
  for (const YAML::Node& c : Cases()["cases"]) {
    const std::string text = c["text"].as<std::string>();
    for (const Offence& o : LintOutcomeText(text)) {
      EXPECT_EQ(text.substr(o.offset, o.words.size()), o.words) << c["id"].as<std::string>();
      EXPECT_FALSE(o.words.empty());
    }
  }
}

}  // namespace
}  // namespace solward
