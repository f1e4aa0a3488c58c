#include "common/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace solward {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = spdlog::stderr_logger_mt("solward");
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %L %v");
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void Log(LogLevel level, absl::string_view text, LogFields fields) {
  std::string line(text);
  for (const auto& [key, value] : fields) {
    const bool quote =
        value.empty() || absl::StrContains(value, ' ') || absl::StrContains(value, '"');
    absl::StrAppend(
        &line, " ", key, "=",
        quote ? absl::StrCat("\"", absl::StrReplaceAll(value, {{"\"", "'"}}), "\"") : value);
  }
  Logger().log(ToSpdlog(level), absl::StrReplaceAll(line, {{"\n", "\\n"}}));
}

void SetLogLevel(LogLevel level) { Logger().set_level(ToSpdlog(level)); }

bool ParseLogLevel(absl::string_view text, LogLevel& level) {
  if (text == "debug")
    level = LogLevel::kDebug;
  else if (text == "info")
    level = LogLevel::kInfo;
  else if (text == "warning")
    level = LogLevel::kWarning;
  else if (text == "error")
    level = LogLevel::kError;
  else
    return false;
  return true;
}

}  // namespace solward
