#include "common/yaml_map.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace solward {
namespace {

constexpr size_t kMaxText = 1 << 20;

}  // namespace

absl::Status ConfigError(absl::string_view where, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "CONFIG_INVALID",
                   absl::StrCat(where, ": ", what));
}

absl::StatusOr<YAML::Node> LoadYaml(absl::string_view text, absl::string_view file) {
  if (text.size() > kMaxText) {
    return ConfigError(file,
                       absl::StrCat("expected at most ", kMaxText, " bytes, found ", text.size()));
  }
  try {
    return YAML::Load(std::string(text));
  } catch (const std::exception& e) {
    return ConfigError(file, absl::StrCat("expected YAML, found: ", CleanUtf8(e.what())));
  }
}

YamlMap::YamlMap(const YAML::Node& node, absl::string_view where) : where_(where) {
  try {
    if (!node.IsDefined() || !node.IsMap()) {
      Fail("expected a map of keys");
      return;
    }
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        Fail("expected plain keys");
        continue;
      }
      const std::string key = entry.first.Scalar();
      if (!entries_.emplace(key, entry.second).second) {
        Fail(absl::StrCat("key \"", key, "\" stands there twice"));
      } else {
        order_.push_back(key);
      }
    }
  } catch (const std::exception& e) {
    Fail(CleanUtf8(e.what()));
  }
}

void YamlMap::Fail(absl::string_view what) {
  if (status_.ok()) status_ = ConfigError(where_, what);
}

const YAML::Node* YamlMap::Find(absl::string_view key) {
  const std::string name(key);
  taken_.insert(name);
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::string YamlMap::String(absl::string_view key) {
  const YAML::Node* node = Find(key);
  if (node == nullptr || !node->IsScalar() || node->Scalar().empty()) {
    Fail(absl::StrCat("expected a text for key \"", key, "\", found ",
                      node == nullptr ? "no such key" : "something else"));
    return "";
  }
  return node->Scalar();
}

std::string YamlMap::String(absl::string_view key, absl::string_view fallback) {
  const YAML::Node* node = Find(key);
  if (node == nullptr) return std::string(fallback);
  if (node->IsScalar()) return node->Scalar();
  Fail(absl::StrCat("expected a text for key \"", key, "\""));
  return "";
}

double YamlMap::ToNumber(const YAML::Node& node, absl::string_view key) {
  double value = 0;
  if (!node.IsScalar() || !absl::SimpleAtod(node.Scalar(), &value) || !std::isfinite(value)) {
    Fail(absl::StrCat(
        "expected a finite number for key \"", key, "\", found ",
        node.IsScalar() ? absl::StrCat("\"", node.Scalar(), "\"") : std::string("something else")));
    return 0;
  }
  return value;
}

double YamlMap::Number(absl::string_view key) {
  const YAML::Node* node = Find(key);
  if (node != nullptr) return ToNumber(*node, key);
  Fail(absl::StrCat("expected a number for key \"", key, "\", found no such key"));
  return 0;
}

double YamlMap::Number(absl::string_view key, double fallback) {
  return OptionalNumber(key).value_or(fallback);
}

std::optional<double> YamlMap::OptionalNumber(absl::string_view key) {
  const YAML::Node* node = Find(key);
  if (node == nullptr) return std::nullopt;
  return ToNumber(*node, key);
}

bool YamlMap::Bool(absl::string_view key, bool fallback) {
  const YAML::Node* node = Find(key);
  if (node == nullptr) return fallback;
  if (node->IsScalar() && node->Scalar() == "true") return true;
  if (node->IsScalar() && node->Scalar() == "false") return false;
  Fail(absl::StrCat("expected true or false for key \"", key, "\""));
  return fallback;
}

std::vector<YAML::Node> YamlMap::List(absl::string_view key) {
  std::vector<YAML::Node> out;
  const YAML::Node* node = Find(key);
  if (node == nullptr) return out;
  if (!node->IsSequence()) {
    Fail(absl::StrCat("expected a list for key \"", key, "\""));
    return out;
  }
  for (const auto& item : *node) out.push_back(item);
  return out;
}

std::vector<std::string> YamlMap::Strings(absl::string_view key) {
  std::vector<std::string> out;
  for (const YAML::Node& item : List(key)) {
    if (item.IsScalar() && !item.Scalar().empty()) {
      out.push_back(item.Scalar());
    } else {
      Fail(absl::StrCat("expected a list of texts for key \"", key, "\""));
    }
  }
  return out;
}

std::vector<double> YamlMap::Numbers(absl::string_view key) {
  std::vector<double> out;
  for (const YAML::Node& item : List(key)) out.push_back(ToNumber(item, key));
  return out;
}

YAML::Node YamlMap::Child(absl::string_view key) {
  const YAML::Node* node = Find(key);
  if (node != nullptr) return *node;
  Fail(absl::StrCat("expected key \"", key, "\", found no such key"));
  return YAML::Node();
}

absl::Status YamlMap::Finish() const {
  if (!status_.ok()) return status_;
  for (const std::string& key : order_) {
    if (taken_.count(key) == 0) {
      return ConfigError(where_, absl::StrCat("unknown key \"", key, "\""));
    }
  }
  return absl::OkStatus();
}

}  // namespace solward
