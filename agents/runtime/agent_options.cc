#include "agents/runtime/agent_options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/text.h"
#include "common/yaml_map.h"

namespace solward::runtime {
namespace {

std::string EnvironmentOr(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

std::string RuntimeFolder() {
  if (geteuid() == 0) return "/run/solward";
  return EnvironmentOr("XDG_RUNTIME_DIR", absl::StrCat("/tmp/solward-", geteuid())) + "/solward";
}

std::string StateFolder() {
  if (geteuid() == 0) return "/var/lib/solward";
  return EnvironmentOr("XDG_STATE_HOME", EnvironmentOr("HOME", "/tmp") + "/.local/state") +
         "/solward";
}

// Unknown keys of a map by line, so that a slip of the pen is found at once.
absl::Status CheckKeys(const YAML::Node& node, absl::string_view file,
                       const std::vector<std::string>& known) {
  if (!node.IsMap()) {
    return ConfigError(absl::StrCat(file, ":", node.Mark().line + 1), "expected keys with values");
  }
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return ConfigError(absl::StrCat(file, ":", entry.first.Mark().line + 1),
                         absl::StrCat("unknown key \"", Truncate(CleanUtf8(key), 80),
                                      "\"; expected one of ", absl::StrJoin(known, ", ")));
    }
  }
  return absl::OkStatus();
}

// A whole number of the range, or a failure kept in the map.
template <typename T>
void ReadInteger(YamlMap& map, absl::string_view key, double least, double most, T& out) {
  const double value = map.Number(key, static_cast<double>(out));
  if (value < least || value > most || value != static_cast<double>(static_cast<int64_t>(value))) {
    map.Fail(absl::StrCat(key, ": expected a whole number from ", least, " to ", most));
    return;
  }
  out = static_cast<T>(value);
}

void ReadSeconds(YamlMap& map, absl::string_view key, double most, absl::Duration& out) {
  int64_t seconds = absl::ToInt64Seconds(out);
  ReadInteger(map, key, 1, most, seconds);
  out = absl::Seconds(seconds);
}

// "0600" as people write permissions: octal, quoted.
void ReadMode(YamlMap& map, unsigned& out) {
  const std::string text = map.String("unix_socket_mode", "");
  if (text.empty()) return;
  char* end = nullptr;
  const unsigned long mode = std::strtoul(text.c_str(), &end, 8);
  if (*end != '\0' || mode > 0777) {
    map.Fail("unix_socket_mode: expected octal permissions such as \"0600\"");
    return;
  }
  out = static_cast<unsigned>(mode);
}

absl::Status ReadTls(const YAML::Node& node, absl::string_view file, AgentOptions& options) {
  RETURN_IF_ERROR(CheckKeys(node, file, {"certificate", "private_key", "client_ca"}));
  YamlMap map(node, absl::StrCat(file, ": tls"));
  options.server.tls.certificate = map.String("certificate");
  options.server.tls.private_key = map.String("private_key");
  options.server.tls.client_ca = map.String("client_ca", "");
  return map.Finish();
}

absl::Status ReadLabels(const YAML::Node& node, absl::string_view file, AgentOptions& options) {
  if (!node.IsMap()) return ConfigError(file, "labels: expected a map of names to text");
  for (const auto& entry : node) {
    if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
      return ConfigError(file, "labels: expected a map of names to text");
    }
    options.service.labels[entry.first.Scalar()] = entry.second.Scalar();
  }
  return absl::OkStatus();
}

absl::Status ReadLimits(const YAML::Node& node, absl::string_view file, AgentOptions& options) {
  RETURN_IF_ERROR(
      CheckKeys(node, file,
                {"concurrency", "queue", "max_uploads", "max_artifact_bytes", "max_total_bytes",
                 "max_message_bytes", "max_concurrent_streams", "max_unix_connections",
                 "longest_delegation_seconds", "results_on_disk", "shutdown_grace_seconds"}));
  YamlMap map(node, absl::StrCat(file, ": limits"));
  constexpr double kLargestExact = 9007199254740992.0;  // 2^53: exact in a double
  ReadInteger(map, "concurrency", 1, 256, options.service.delegations.concurrency);
  ReadInteger(map, "queue", 0, 100'000, options.service.delegations.queue);
  ReadInteger(map, "max_uploads", 1, 1024, options.service.max_uploads);
  ReadInteger(map, "max_artifact_bytes", 1, kLargestExact,
              options.workspace_limits.max_artifact_bytes);
  ReadInteger(map, "max_total_bytes", 1, kLargestExact, options.workspace_limits.max_total_bytes);
  ReadInteger(map, "max_message_bytes", 1 << 16, 1 << 30, options.server.max_message_bytes);
  ReadInteger(map, "max_concurrent_streams", 1, 100'000, options.server.max_concurrent_streams);
  ReadInteger(map, "max_unix_connections", 1, 10'000, options.server.max_unix_connections);
  ReadInteger(map, "results_on_disk", 1, 1'000'000, options.service.delegations.ended_on_disk);
  ReadSeconds(map, "longest_delegation_seconds", 7 * 86'400, options.service.delegations.longest);
  ReadSeconds(map, "shutdown_grace_seconds", 3'600, options.shutdown_grace);
  return map.Finish();
}

}  // namespace

AgentOptions DefaultAgentOptions(absl::string_view short_name) {
  AgentOptions options;
  options.server.listen = {absl::StrCat("unix:", RuntimeFolder(), "/", short_name, ".sock")};
  options.workspace = absl::StrCat(StateFolder(), "/", short_name);
  return options;
}

absl::Status ApplyAgentYaml(absl::string_view yaml, absl::string_view file, AgentOptions& options) {
  ASSIGN_OR_RETURN(const YAML::Node root, LoadYaml(yaml, file));
  if (root.IsNull()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckKeys(root, file,
                            {"listen", "unix_socket_mode", "tls", "workspace", "coordinator",
                             "coordinator_ca", "advertise", "labels", "limits", "log_level"}));
  YamlMap map(root, file);
  if (const auto listen = map.Strings("listen"); !listen.empty()) options.server.listen = listen;
  ReadMode(map, options.server.unix_socket_mode);
  options.workspace = map.String("workspace", options.workspace);
  options.registration.coordinator = map.String("coordinator", options.registration.coordinator);
  options.registration.ca_file = map.String("coordinator_ca", options.registration.ca_file);
  options.registration.advertise = map.String("advertise", options.registration.advertise);
  options.log_level = map.String("log_level", options.log_level);
  RETURN_IF_ERROR(map.status());
  if (root["tls"]) RETURN_IF_ERROR(ReadTls(map.Child("tls"), file, options));
  if (root["labels"]) RETURN_IF_ERROR(ReadLabels(map.Child("labels"), file, options));
  if (root["limits"]) RETURN_IF_ERROR(ReadLimits(map.Child("limits"), file, options));
  return map.Finish();
}

}  // namespace solward::runtime
