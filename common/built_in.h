// Parsing of the files compiled into the program.
#ifndef SOLWARD_COMMON_BUILT_IN_H_
#define SOLWARD_COMMON_BUILT_IN_H_

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/embedded_config.h"

namespace solward {

// The built-in config/<name> through `parse` (StatusOr<T> of the text). A
// program whose own configuration is invalid cannot run: it aborts with the
// reason. Tests parse every built-in file, so a released program never does.
template <typename Parse>
auto ParseBuiltIn(absl::string_view name, Parse parse) {
  const absl::StatusOr<absl::string_view> text = EmbeddedConfig(name);
  decltype(parse(*text)) parsed = absl::UnknownError("");
  if (text.ok()) {
    parsed = parse(*text);
  } else {
    parsed = text.status();
  }
  if (!parsed.ok()) {
    std::fprintf(stderr, "solward: built-in config/%s is invalid: %s\n", std::string(name).c_str(),
                 parsed.status().ToString().c_str());
    std::abort();
  }
  return *std::move(parsed);
}

}  // namespace solward

#endif  // SOLWARD_COMMON_BUILT_IN_H_
