#include "common/classification_parameters.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/built_in.h"
#include "common/embedded_config.h"
#include "common/status.h"
#include "common/yaml_map.h"

namespace solward {
namespace {

constexpr absl::string_view kFile = "classification.yaml";

struct Parameter {
  absl::string_view name;
  double ClassificationParameters::*field;
};

constexpr Parameter kParameters[] = {
    {"floor_percent", &ClassificationParameters::floor_percent},
    {"margin_percent", &ClassificationParameters::margin_percent},
    {"limit_threshold_percent", &ClassificationParameters::limit_threshold_percent},
    {"limit_margin_percent", &ClassificationParameters::limit_margin_percent},
    {"launch_call_ns", &ClassificationParameters::launch_call_ns},
    {"synchronization_ns", &ClassificationParameters::synchronization_ns},
    {"host_stretch_ns", &ClassificationParameters::host_stretch_ns},
    {"long_host_stretch_ns", &ClassificationParameters::long_host_stretch_ns},
    {"flops_disagreement_percent", &ClassificationParameters::flops_disagreement_percent},
    {"near_roof_percent", &ClassificationParameters::near_roof_percent},
};

// Percent in [0, 100); ns in (0, one minute].
bool InRange(absl::string_view name, double value) {
  if (absl::EndsWith(name, "_percent")) return value >= 0 && value < 100;
  return value > 0 && value <= 60e9;
}

}  // namespace

absl::StatusOr<ClassificationParameters> ParseClassificationParameters(absl::string_view yaml) {
  ASSIGN_OR_RETURN(const YAML::Node root, LoadYaml(yaml, kFile));
  YamlMap map(root, kFile);
  ClassificationParameters out;
  for (const Parameter& parameter : kParameters) {
    const YAML::Node node = map.Child(parameter.name);
    RETURN_IF_ERROR(map.status());
    YamlMap entry(node, absl::StrCat(kFile, ": ", parameter.name));
    const double value = entry.Number("value");
    entry.String("why");
    RETURN_IF_ERROR(entry.Finish());
    if (!InRange(parameter.name, value)) {
      return ConfigError(entry.where(),
                         absl::StrCat("expected a percentage in [0, 100) or a duration in "
                                      "(0, 60e9] ns, found ",
                                      value));
    }
    out.*parameter.field = value;
  }
  RETURN_IF_ERROR(map.Finish());
  if (out.long_host_stretch_ns < out.host_stretch_ns) {
    return ConfigError(kFile, "long_host_stretch_ns: expected at least host_stretch_ns");
  }
  return out;
}

const ClassificationParameters& BuiltInClassificationParameters() {
  static const ClassificationParameters parameters =
      ParseBuiltIn(kFile, ParseClassificationParameters);
  return parameters;
}

}  // namespace solward
