#include "agents/profiling/readers/ncu_names.h"

#include <yaml-cpp/yaml.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/embedded_config.h"
#include "common/status.h"

namespace solward::readers {
namespace {

absl::Status BadTable(absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "CONFIG_INVALID",
                   absl::StrCat("ncu_details_names.yaml: ", what));
}

}  // namespace

absl::StatusOr<NcuNames> NcuNames::Parse(absl::string_view yaml) {
  NcuNames names;
  try {
    const YAML::Node entries = YAML::Load(std::string(yaml))["names"];
    if (!entries.IsSequence()) return BadTable("expected a list under 'names'");
    for (const YAML::Node& entry : entries) {
      const std::string raw = entry["raw"].as<std::string>();
      for (const YAML::Node& printed : entry["printed"]) {
        const std::string name = printed.as<std::string>();
        if (!names.raw_.emplace(name, raw).second) {
          return BadTable(absl::StrCat("'", name, "' occurs twice"));
        }
      }
    }
  } catch (const std::exception& error) {
    return BadTable(error.what());
  }
  return names;
}

absl::string_view NcuNames::RawName(absl::string_view printed) const {
  const auto found = raw_.find(printed);
  return found == raw_.end() ? absl::string_view() : found->second;
}

const NcuNames& BuiltInNcuNames() {
  static const NcuNames* const kNames = [] {
    absl::StatusOr<absl::string_view> text = EmbeddedConfig("ncu_details_names.yaml");
    absl::StatusOr<NcuNames> names = text.ok() ? NcuNames::Parse(*text) : text.status();
    // A build without its table is found by the first test; at run time names
    // then stay as printed.
    return new NcuNames(names.ok() ? *std::move(names) : NcuNames());
  }();
  return *kNames;
}

}  // namespace solward::readers
