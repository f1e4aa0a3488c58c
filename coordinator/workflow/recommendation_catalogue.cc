#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/built_in.h"
#include "common/status.h"
#include "common/yaml_map.h"
#include "coordinator/workflow/recommendations.h"

namespace solward::workflow {
namespace {

using Condition = RecommendationCondition;

constexpr absl::string_view kFile = "recommendations.yaml";

void ReadCondition(const YAML::Node& node, const std::string& where, const MetricCatalogue& metrics,
                   YamlMap& entry, std::vector<Condition>& conditions) {
  YamlMap map(node, where);
  Condition condition;
  condition.metric = map.String("metric", "");
  condition.finding = map.String("finding", "");
  const std::string is = map.String("is");
  if (is == "present") {
    condition.is = Condition::Is::kPresent;
  } else if (is == "absent") {
    condition.is = Condition::Is::kAbsent;
  } else if (is == "above" || is == "below") {
    condition.is = is == "above" ? Condition::Is::kAbove : Condition::Is::kBelow;
    condition.value = map.Number("value");
    if (condition.metric.empty()) map.Fail("above and below need a metric");
  } else {
    map.Fail(absl::StrCat("\"is\": expected present, absent, above or below, found \"", is, "\""));
  }
  if (condition.metric.empty() == condition.finding.empty()) {
    map.Fail("expected either a metric or a finding");
  }
  if (!condition.metric.empty() && metrics.Find(condition.metric) == nullptr) {
    map.Fail(absl::StrCat("no metric \"", condition.metric, "\" in the catalogue"));
  }
  if (const absl::Status status = map.Finish(); !status.ok()) {
    entry.Fail(status.message());
    return;
  }
  conditions.push_back(std::move(condition));
}

void ReadClasses(YamlMap& map, RecommendationEntry& entry) {
  for (const std::string& name : map.Strings("classes")) {
    v1::BottleneckClass value = v1::BOTTLENECK_CLASS_UNSPECIFIED;
    v1::BottleneckClass_Parse(absl::StrCat("BOTTLENECK_CLASS_", absl::AsciiStrToUpper(name)),
                              &value);
    if (IsUndetermined(value)) {
      map.Fail(absl::StrCat("\"classes\": \"", name, "\" is no class that can be recommended for"));
      return;
    }
    entry.classes.push_back(value);
  }
  if (entry.classes.empty()) map.Fail("expected at least one class");
}

void ReadEffect(YamlMap& map, RecommendationEntry& entry) {
  const std::string effect = map.String("effect");
  if (effect == "none") {
    entry.effect = RecommendationEntry::Effect::kNone;
  } else if (effect == "class") {
    entry.effect = RecommendationEntry::Effect::kClass;
  } else if (effect == "share") {
    entry.effect = RecommendationEntry::Effect::kShare;
  } else if (effect == "clock") {
    entry.effect = RecommendationEntry::Effect::kClock;
  } else {
    map.Fail(
        absl::StrCat("\"effect\": expected class, share, clock or none, found \"", effect, "\""));
  }
}

// Texts themselves are in the message table, which reads the same file.
void ReadTexts(const YAML::Node& node, YamlMap& map, RecommendationEntry& entry) {
  for (const char* part : {"action", "check", "verify"}) {
    if (node[part]) map.Child(part);
  }
  entry.has_action = static_cast<bool>(node["action"]);
  entry.has_check = static_cast<bool>(node["check"]);
  if (!node["verify"]) map.Fail("how to verify it is missing");
  const bool may_be_check = entry.always_check || !entry.precondition.empty();
  if (may_be_check && !entry.has_check) map.Fail("its check is missing");
  if (!entry.always_check && !entry.has_action) map.Fail("its action is missing");
}

absl::StatusOr<RecommendationEntry> ReadEntry(const YAML::Node& node,
                                              const MetricCatalogue& metrics) {
  YamlMap map(node, kFile);
  RecommendationEntry entry;
  entry.id = map.String("id");
  const std::string where = absl::StrCat(kFile, ": ", entry.id);
  map.SetWhere(where);
  ReadClasses(map, entry);
  entry.kernel = map.Bool("kernel", false);
  entry.always_check = map.Bool("always_check", false);
  entry.any_finding = map.Strings("any_finding");
  for (const YAML::Node& condition : map.List("when")) {
    ReadCondition(condition, where, metrics, map, entry.when);
  }
  for (const YAML::Node& condition : map.List("precondition")) {
    ReadCondition(condition, where, metrics, map, entry.precondition);
  }
  ReadEffect(map, entry);
  ReadTexts(node, map, entry);
  RETURN_IF_ERROR(map.Finish());
  return entry;
}

}  // namespace

absl::StatusOr<RecommendationCatalogue> RecommendationCatalogue::Parse(
    absl::string_view yaml, const MetricCatalogue& metrics) {
  ASSIGN_OR_RETURN(const YAML::Node root, LoadYaml(yaml, kFile));
  YamlMap map(root, kFile);
  RecommendationCatalogue catalogue;
  for (const YAML::Node& node : map.List("recommendations")) {
    ASSIGN_OR_RETURN(RecommendationEntry entry, ReadEntry(node, metrics));
    catalogue.entries_.push_back(std::move(entry));
  }
  RETURN_IF_ERROR(map.Finish());
  return catalogue;
}

const RecommendationCatalogue& BuiltInRecommendations() {
  static const RecommendationCatalogue* const catalogue =
      new RecommendationCatalogue(ParseBuiltIn("recommendations.yaml", [](absl::string_view yaml) {
        return RecommendationCatalogue::Parse(yaml, BuiltInCatalogue());
      }));
  return *catalogue;
}

}  // namespace solward::workflow
