// Exit codes of the solward command; documented in `solward --help`.
#ifndef SOLWARD_CLIENTS_CLI_EXIT_CODE_H_
#define SOLWARD_CLIENTS_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace solward::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,         // the analysis failed, no capture could be used, any other error
  kExitUsage = 2,          // a wrong option or a refused request
  kExitInputRequired = 3,  // questions wait for `solward answer`
  kExitUnreachable = 4,    // no coordinator answers
  kExitCancelled = 5,      // cancelled or interrupted
  kExitNotFound = 6,       // no such analysis, artifact or file
  kExitNotVerified = 7,    // a number of the report does not match its artifact
};

int ExitCodeOf(const absl::Status& status);

}  // namespace solward::cli

#endif  // SOLWARD_CLIENTS_CLI_EXIT_CODE_H_
