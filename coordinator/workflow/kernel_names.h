// Kernel names as different tools print them, brought to one form so that the
// counters of a kernel find its launches on a timeline.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_KERNEL_NAMES_H_
#define SOLWARD_COORDINATOR_WORKFLOW_KERNEL_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace solward::workflow {

// Without return type, parameter list, namespaces, spaces and casts of template
// arguments; lambdas in one spelling:
//   "void at::native::fill<(int)4, at::native::Fill<float>>(int, T2)"
//   "void fill<4, Fill<float> >(int, T2)"        -> "fill<4,Fill<float>>"
std::string NormalKernelName(absl::string_view name);

// The same for the name of a scope, which may name a part of the kernel's metric:
// "void fill<4>(int)|long_scoreboard" -> "fill<4>|long_scoreboard".
std::string NormalScopeName(absl::string_view name);

// Whether the name of a scope names such a part.
bool NamesPart(absl::string_view name);

// The function name alone: "fill".
std::string BaseKernelName(absl::string_view name);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_KERNEL_NAMES_H_
