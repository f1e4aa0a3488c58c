// Strict reading of YAML maps: a missing, repeated, mistyped or unknown key is
// an INVALID_ARGUMENT that names the file, the entry and the key. No exception
// of yaml-cpp leaves it. Include it in .cc files only (heavy).
//
//   ASSIGN_OR_RETURN(YAML::Node root, LoadYaml(text, "metrics.yaml"));
//   YamlMap map(root, "metrics.yaml");
//   const std::string id = map.String("id");
//   const double tolerance = map.Number("tolerance", 0.05);
//   RETURN_IF_ERROR(map.Finish());
#ifndef SOLWARD_COMMON_YAML_MAP_H_
#define SOLWARD_COMMON_YAML_MAP_H_

#include <yaml-cpp/yaml.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace solward {

// Parses at most 1 MiB of text. `file` is only for messages.
absl::StatusOr<YAML::Node> LoadYaml(absl::string_view text, absl::string_view file);

absl::Status ConfigError(absl::string_view where, absl::string_view what);

// Reads a map key by key; the first thing wrong is kept for Finish().
class YamlMap {
 public:
  YamlMap(const YAML::Node& node, absl::string_view where);

  // Changes what messages say from now on ("metrics.yaml: metric mfu").
  void SetWhere(absl::string_view where) { where_ = std::string(where); }
  const std::string& where() const { return where_; }

  // Must be there and not empty.
  std::string String(absl::string_view key);
  std::string String(absl::string_view key, absl::string_view fallback);
  double Number(absl::string_view key);
  double Number(absl::string_view key, double fallback);
  std::optional<double> OptionalNumber(absl::string_view key);
  bool Bool(absl::string_view key, bool fallback);
  // A list of non-empty strings; empty when absent.
  std::vector<std::string> Strings(absl::string_view key);
  std::vector<double> Numbers(absl::string_view key);
  // Items of a list (absent: none) or any node (absent: an error, undefined).
  std::vector<YAML::Node> List(absl::string_view key);
  YAML::Node Child(absl::string_view key);
  void Fail(absl::string_view what);
  // The first error so far.
  const absl::Status& status() const { return status_; }
  // The first error, else an error when a key was never asked for.
  absl::Status Finish() const;

 private:
  const YAML::Node* Find(absl::string_view key);
  double ToNumber(const YAML::Node& node, absl::string_view key);

  std::string where_;
  std::map<std::string, YAML::Node> entries_;
  std::vector<std::string> order_;
  std::set<std::string> taken_;
  absl::Status status_;
};

}  // namespace solward

#endif  // SOLWARD_COMMON_YAML_MAP_H_
