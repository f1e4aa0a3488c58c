// What every Solward service does as a process.
#ifndef SOLWARD_COMMON_PROCESS_H_
#define SOLWARD_COMMON_PROCESS_H_

#include <string>

#include "absl/status/statusor.h"

namespace solward {

// SIGTERM for this process when its parent ends, also if the parent has ended
// already. Call at the start of main.
void DieWithParent();

// Blocks SIGINT and SIGTERM in this thread and those started after it, so that
// WaitForStopSignal gets them. Ignores SIGPIPE.
void BlockStopSignals();

// Lets them end the process again, as they do by default.
void UnblockStopSignals();

// Waits for SIGINT or SIGTERM and returns its number.
int WaitForStopSignal();

// The text of a file of at most 1 MiB. NOT_FOUND, INVALID_ARGUMENT.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace solward

#endif  // SOLWARD_COMMON_PROCESS_H_
