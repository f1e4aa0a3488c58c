#include "common/metric_catalogue.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/built_in.h"
#include "common/status.h"
#include "common/yaml_map.h"

namespace solward {
namespace {

constexpr absl::string_view kFile = "metrics.yaml";
constexpr int kMaxDecimals = 9;

bool IsId(absl::string_view id) {
  if (id.empty() || !absl::ascii_islower(id[0])) return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
  });
}

v1::ScopeKind ParseScope(absl::string_view text) {
  if (text == "RUN") return v1::SCOPE_KIND_RUN;
  if (text == "STEP") return v1::SCOPE_KIND_STEP;
  if (text == "KERNEL") return v1::SCOPE_KIND_KERNEL;
  if (text == "DEVICE") return v1::SCOPE_KIND_DEVICE;
  return v1::SCOPE_KIND_UNSPECIFIED;
}

// The id of an entry; messages about the entry name it from then on.
std::string TakeId(YamlMap& map, absl::string_view kind) {
  std::string id = map.String("id");
  if (id.empty()) return id;
  map.SetWhere(absl::StrCat(kFile, ": ", kind, " \"", id, "\""));
  if (!IsId(id)) map.Fail("expected an id of lower-case letters, digits and _");
  return id;
}

std::vector<std::string> TakeSynonyms(YamlMap& map) {
  std::vector<std::string> synonyms = map.Strings("synonyms");
  for (const std::string& synonym : synonyms) {
    if (std::any_of(synonym.begin(), synonym.end(), absl::ascii_isupper)) {
      map.Fail(absl::StrCat("synonym \"", synonym, "\": expected lower case"));
    }
  }
  return synonyms;
}

absl::StatusOr<MetricDefinition> ParseMetric(const YAML::Node& node, size_t index) {
  YamlMap map(node, absl::StrCat(kFile, ": entry ", index, " of metrics"));
  MetricDefinition metric;
  metric.id = TakeId(map, "metric");
  metric.unit = map.String("unit");
  metric.default_scope = ParseScope(map.String("scope"));
  metric.name_en = map.String("en");
  metric.name_fr = map.String("fr");
  metric.definition = map.String("definition");
  metric.source = map.String("source");
  metric.synonyms = TakeSynonyms(map);
  metric.tolerance = map.Number("tolerance", metric.tolerance);
  metric.si = map.Bool("si", metric.si);
  const double decimals = map.Number("decimals", metric.decimals);
  if (metric.default_scope == v1::SCOPE_KIND_UNSPECIFIED) {
    map.Fail("scope: expected RUN, STEP, KERNEL or DEVICE");
  }
  if (metric.tolerance < 0) map.Fail("tolerance: expected 0 or more");
  if (decimals < 0 || decimals > kMaxDecimals || decimals != std::floor(decimals)) {
    map.Fail(absl::StrCat("decimals: expected a whole number from 0 to ", kMaxDecimals));
  }
  RETURN_IF_ERROR(map.Finish());
  metric.decimals = static_cast<int>(decimals);
  return metric;
}

absl::StatusOr<FormulaDefinition> ParseFormula(const YAML::Node& node, size_t index) {
  YamlMap map(node, absl::StrCat(kFile, ": entry ", index, " of formulas"));
  FormulaDefinition formula;
  formula.id = TakeId(map, "formula");
  formula.metric_id = map.String("metric");
  formula.expression = map.String("expression");
  formula.source = map.String("source");
  RETURN_IF_ERROR(map.Finish());
  absl::StatusOr<std::vector<std::string>> inputs = FormulaInputs(formula.expression);
  if (!inputs.ok()) return Annotate(inputs.status(), map.where());
  if (inputs->empty()) return ConfigError(map.where(), "expected at least one input");
  formula.inputs = *std::move(inputs);
  return formula;
}

absl::StatusOr<MetricGroup> ParseGroup(const YAML::Node& node, size_t index) {
  YamlMap map(node, absl::StrCat(kFile, ": entry ", index, " of groups"));
  MetricGroup group;
  group.id = TakeId(map, "group");
  group.metric_ids = map.Strings("metrics");
  group.synonyms = TakeSynonyms(map);
  RETURN_IF_ERROR(map.Finish());
  return group;
}

// Parses a list of entries with unique ids into `out` and `index`.
template <typename T, typename Parse>
absl::Status ParseEntries(const std::vector<YAML::Node>& nodes, Parse parse, std::vector<T>& out,
                          std::map<std::string, size_t, std::less<>>& index) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    ASSIGN_OR_RETURN(T entry, parse(nodes[i], i));
    if (!index.emplace(entry.id, i).second) {
      return ConfigError(kFile, absl::StrCat("id \"", entry.id, "\" is defined twice"));
    }
    out.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

// A word of a statement must lead to one thing.
template <typename T>
absl::Status CheckSynonyms(const std::vector<T>& entries,
                           std::map<std::string, std::string>& owners) {
  for (const T& entry : entries) {
    for (const std::string& synonym : entry.synonyms) {
      const auto [known, added] = owners.emplace(synonym, entry.id);
      if (added || known->second == entry.id) continue;
      return ConfigError(kFile, absl::StrCat("synonym \"", synonym, "\" stands for both \"",
                                             known->second, "\" and \"", entry.id, "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUnique(const std::vector<std::string>& names, absl::string_view key) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      return ConfigError(kFile, absl::StrCat(key, ": \"", name, "\" stands there twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReferences(const MetricCatalogue& catalogue) {
  for (const FormulaDefinition& formula : catalogue.formulas()) {
    if (catalogue.Find(formula.metric_id) != nullptr) continue;
    return ConfigError(kFile, absl::StrCat("formula \"", formula.id, "\": unknown metric \"",
                                           formula.metric_id, "\""));
  }
  for (const MetricGroup& group : catalogue.groups()) {
    if (catalogue.Find(group.id) != nullptr) {
      return ConfigError(kFile, absl::StrCat("group \"", group.id, "\": a metric has this id"));
    }
    for (const std::string& id : group.metric_ids) {
      if (catalogue.Find(id) != nullptr) continue;
      return ConfigError(kFile,
                         absl::StrCat("group \"", group.id, "\": unknown metric \"", id, "\""));
    }
  }
  for (const std::string& id : catalogue.default_metrics()) {
    if (catalogue.Find(id) != nullptr || catalogue.FindGroup(id) != nullptr) continue;
    return ConfigError(kFile, absl::StrCat("default_metrics: unknown metric \"", id, "\""));
  }
  return absl::OkStatus();
}

template <typename T>
const T* FindIn(const std::vector<T>& entries,
                const std::map<std::string, size_t, std::less<>>& index, absl::string_view id) {
  const auto found = index.find(id);
  return found == index.end() ? nullptr : &entries[found->second];
}

}  // namespace

absl::StatusOr<MetricCatalogue> MetricCatalogue::Parse(absl::string_view yaml) {
  ASSIGN_OR_RETURN(const YAML::Node root, LoadYaml(yaml, kFile));
  YamlMap map(root, kFile);
  MetricCatalogue out;
  out.tool_precedence_ = map.Strings("tool_precedence");
  out.default_metrics_ = map.Strings("default_metrics");
  const std::vector<YAML::Node> metrics = map.List("metrics");
  const std::vector<YAML::Node> formulas = map.List("formulas");
  const std::vector<YAML::Node> groups = map.List("groups");
  RETURN_IF_ERROR(map.Finish());
  if (metrics.empty()) return ConfigError(kFile, "metrics: expected at least one");
  if (out.tool_precedence_.empty()) {
    return ConfigError(kFile, "tool_precedence: expected at least one tool");
  }
  RETURN_IF_ERROR(CheckUnique(out.tool_precedence_, "tool_precedence"));
  RETURN_IF_ERROR(CheckUnique(out.default_metrics_, "default_metrics"));
  RETURN_IF_ERROR(ParseEntries(metrics, ParseMetric, out.metrics_, out.metric_index_));
  RETURN_IF_ERROR(ParseEntries(formulas, ParseFormula, out.formulas_, out.formula_index_));
  RETURN_IF_ERROR(ParseEntries(groups, ParseGroup, out.groups_, out.group_index_));
  RETURN_IF_ERROR(CheckReferences(out));
  std::map<std::string, std::string> owners;
  RETURN_IF_ERROR(CheckSynonyms(out.metrics_, owners));
  RETURN_IF_ERROR(CheckSynonyms(out.groups_, owners));
  return out;
}

const MetricDefinition* MetricCatalogue::Find(absl::string_view id) const {
  return FindIn(metrics_, metric_index_, id);
}

const FormulaDefinition* MetricCatalogue::FindFormula(absl::string_view id) const {
  return FindIn(formulas_, formula_index_, id);
}

const MetricGroup* MetricCatalogue::FindGroup(absl::string_view id) const {
  return FindIn(groups_, group_index_, id);
}

std::vector<std::string> MetricCatalogue::Expand(absl::string_view id) const {
  if (Find(id) != nullptr) return {std::string(id)};
  const MetricGroup* group = FindGroup(id);
  return group == nullptr ? std::vector<std::string>() : group->metric_ids;
}

const MetricCatalogue& BuiltInCatalogue() {
  static const MetricCatalogue catalogue = ParseBuiltIn(kFile, MetricCatalogue::Parse);
  return catalogue;
}

}  // namespace solward
