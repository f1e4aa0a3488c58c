#include "coordinator/workflow/capture_abilities.h"

#include "absl/strings/str_cat.h"
#include "common/built_in.h"
#include "common/status.h"
#include "common/yaml_map.h"

namespace solward::workflow {
namespace {

constexpr char kFile[] = "capture_abilities.yaml";

}  // namespace

absl::StatusOr<CaptureAbilities> CaptureAbilities::Parse(absl::string_view yaml,
                                                         const MetricCatalogue& catalogue) {
  ASSIGN_OR_RETURN(const YAML::Node root, LoadYaml(yaml, kFile));
  YamlMap map(root, kFile);
  const std::vector<YAML::Node> rows = map.List("evidence");
  RETURN_IF_ERROR(map.Finish());
  CaptureAbilities out;
  for (const YAML::Node& node : rows) {
    YamlMap row(node, absl::StrCat(kFile, ": evidence"));
    const std::string evidence = row.String("id");
    const std::vector<std::string> captures = row.Strings("captures");
    const std::vector<std::string> metrics = row.Strings("metrics");
    RETURN_IF_ERROR(row.Finish());
    for (const std::string& capture : captures) {
      v1::CaptureKind kind;
      if (!v1::CaptureKind_Parse(absl::StrCat("CAPTURE_KIND_", capture), &kind)) {
        return ConfigError(kFile,
                           absl::StrCat(evidence, ": unknown kind of capture \"", capture, "\""));
      }
      out.evidence_[kind] = evidence;
    }
    for (const std::string& id : metrics) {
      if (catalogue.Find(id) == nullptr) {
        return ConfigError(kFile, absl::StrCat(evidence, ": unknown metric \"", id, "\""));
      }
      out.givers_[id].insert(evidence);
    }
  }
  return out;
}

bool CaptureAbilities::CanGive(v1::CaptureKind kind, absl::string_view metric_id) const {
  const auto giver = givers_.find(metric_id);
  const auto evidence = evidence_.find(kind);
  if (giver == givers_.end() || evidence == evidence_.end()) return true;
  return giver->second.count(evidence->second) > 0;
}

std::vector<std::string> CaptureAbilities::EvidenceFor(absl::string_view metric_id) const {
  const auto giver = givers_.find(metric_id);
  if (giver == givers_.end()) return {};
  return {giver->second.begin(), giver->second.end()};
}

const CaptureAbilities& BuiltInCaptureAbilities() {
  static const CaptureAbilities abilities = ParseBuiltIn(kFile, [](absl::string_view text) {
    return CaptureAbilities::Parse(text, BuiltInCatalogue());
  });
  return abilities;
}

}  // namespace solward::workflow
