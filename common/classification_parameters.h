// Parameters of config/classification.yaml, each with the reason for its value.
#ifndef SOLWARD_COMMON_CLASSIFICATION_PARAMETERS_H_
#define SOLWARD_COMMON_CLASSIFICATION_PARAMETERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace solward {

// Percent unless the name says otherwise.
struct ClassificationParameters {
  double floor_percent = 20;            // an overhead below it is not the bottleneck
  double margin_percent = 5;            // first two within it: both are named
  double limit_threshold_percent = 60;  // utilization from which a roof limits a kernel
  double limit_margin_percent = 10;     // compute and memory this close: both are named
  double launch_call_ns = 2'000;        // fastest launch call on the CPU
  double synchronization_ns = 5'000;    // fastest synchronization round trip
  double host_stretch_ns = 200'000;     // no CUDA call for this long is host work
  double long_host_stretch_ns = 1'000'000;
  double flops_disagreement_percent = 1;  // FLOPs given against dimensions
  double near_roof_percent = 10;          // recoverable below it: "near its speed of light"
};

// Parses config/classification.yaml; unknown or missing names and values out
// of range are INVALID_ARGUMENT.
absl::StatusOr<ClassificationParameters> ParseClassificationParameters(absl::string_view yaml);

const ClassificationParameters& BuiltInClassificationParameters();

}  // namespace solward

#endif  // SOLWARD_COMMON_CLASSIFICATION_PARAMETERS_H_
