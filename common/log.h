// Process log: one line an event, to stderr, "key=value" fields after the text.
#ifndef SOLWARD_COMMON_LOG_H_
#define SOLWARD_COMMON_LOG_H_

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace solward {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
using LogFields = std::initializer_list<std::pair<absl::string_view, std::string>>;

// Thread-safe. Level from SetLogLevel, by default kInfo.
void Log(LogLevel level, absl::string_view text, LogFields fields = {});
void SetLogLevel(LogLevel level);
// "debug", "info", "warning", "error"; false when unknown.
bool ParseLogLevel(absl::string_view text, LogLevel& level);

}  // namespace solward

#endif  // SOLWARD_COMMON_LOG_H_
