// Shell completion scripts.
#ifndef SOLWARD_CLIENTS_CLI_COMPLETION_H_
#define SOLWARD_CLIENTS_CLI_COMPLETION_H_

#include <string>

#include "absl/status/statusor.h"

namespace solward::cli {

// "bash", "zsh" or "fish". INVALID_ARGUMENT otherwise.
absl::StatusOr<std::string> CompletionScript(const std::string& shell);

}  // namespace solward::cli

#endif  // SOLWARD_CLIENTS_CLI_COMPLETION_H_
