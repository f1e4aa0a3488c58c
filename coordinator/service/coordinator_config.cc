#include "coordinator/service/coordinator_config.h"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/yaml_map.h"

namespace solward::service {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// "5s", "200ms", "1h30m"; positive or zero.
void ReadDuration(YamlMap& map, absl::string_view key, absl::Duration& out) {
  const std::string text = map.String(key, absl::FormatDuration(out));
  absl::Duration parsed;
  if (absl::ParseDuration(text, &parsed) && parsed >= absl::ZeroDuration())
    out = parsed;
  else
    map.Fail(absl::StrCat(key, ": a duration as in 5s or 200ms expected, found \"", text, "\""));
}

template <typename Int>
void ReadInt(YamlMap& map, absl::string_view key, double least, double most, Int& out) {
  const double value = map.Number(key, static_cast<double>(out));
  if (value >= least && value <= most && value == std::floor(value))
    out = static_cast<Int>(value);
  else
    map.Fail(absl::StrCat(key, ": a whole number from ", least, " to ", most, " expected"));
}

// The child of `key`, an empty map when it is absent.
YAML::Node Section(YamlMap& root, const YAML::Node& node, absl::string_view key) {
  return node[std::string(key)].IsDefined() ? root.Child(key) : YAML::Node(YAML::NodeType::Map);
}

absl::Status ReadServer(const YAML::Node& node, const std::string& where, RpcServerOptions& out) {
  YamlMap map(node, where);
  ReadInt(map, "max_message_bytes", 1 << 16, 1 << 30, out.max_message_bytes);
  ReadInt(map, "max_concurrent_streams", 1, 100000, out.max_concurrent_streams);
  ReadInt(map, "max_unix_connections", 1, 100000, out.max_unix_connections);
  const std::string mode = map.String("unix_socket_mode", "0600");
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(mode.data(), mode.data() + mode.size(), bits, 8);
  if (error != std::errc() || end != mode.data() + mode.size() || bits > 0777) {
    map.Fail("unix_socket_mode: octal permissions as in \"0600\" expected");
  }
  out.unix_socket_mode = bits;
  return map.Finish();
}

absl::Status ReadTls(const YAML::Node& node, const std::string& where, TlsFiles& out) {
  YamlMap map(node, where);
  out.certificate = map.String("certificate", "");
  out.private_key = map.String("private_key", "");
  out.client_ca = map.String("client_ca", "");
  if (out.certificate.empty() != out.private_key.empty()) {
    map.Fail("certificate and private_key belong together; both or none expected");
  }
  return map.Finish();
}

absl::Status ReadRegistry(const YAML::Node& node, const std::string& where,
                          CoordinatorConfig& out) {
  YamlMap map(node, where);
  ReadDuration(map, "heartbeat_interval", out.registry.heartbeat_interval);
  ReadDuration(map, "expiry", out.registry.expiry);
  ReadDuration(map, "describe_deadline", out.registry.describe_deadline);
  out.registry_callers = map.Strings("allowed_callers");
  out.specialist_ca = map.String("specialist_ca", "");
  if (out.registry.expiry <= out.registry.heartbeat_interval) {
    map.Fail("expiry: more than heartbeat_interval expected");
  }
  return map.Finish();
}

absl::Status ReadDispatch(const YAML::Node& node, const std::string& where,
                          delegation::DispatcherOptions& out) {
  YamlMap map(node, where);
  ReadDuration(map, "wait_for_specialist", out.wait_for_specialist);
  ReadDuration(map, "deadline", out.deadline);
  ReadInt(map, "max_attempts", 1, 10, out.max_attempts);
  return map.Finish();
}

}  // namespace

absl::StatusOr<CoordinatorConfig> ParseCoordinatorConfig(absl::string_view yaml,
                                                         const std::string& file) {
  ASSIGN_OR_RETURN(YAML::Node node, LoadYaml(yaml, file));
  if (node.IsNull()) node = YAML::Node(YAML::NodeType::Map);
  YamlMap map(node, file);
  RETURN_IF_ERROR(map.status());
  CoordinatorConfig config;
  config.server.listen = map.Strings("listen");
  config.state_dir = map.String("state_dir", "");
  const std::string level = map.String("log_level", "info");
  if (!ParseLogLevel(level, config.log_level)) {
    map.Fail("log_level: debug, info, warning or error expected");
  }
  ReadInt(map, "workers", 1, 256, config.engine.workers);
  ReadInt(map, "max_queued", 1, 100000, config.engine.max_queued);
  ReadDuration(map, "drain", config.drain);
  const auto section = [&](absl::string_view key) { return Section(map, node, key); };
  const YAML::Node server = section("server"), tls = section("tls"), registry = section("registry"),
                   dispatch = section("dispatch");
  RETURN_IF_ERROR(map.Finish());
  RETURN_IF_ERROR(ReadServer(server, file + ": server", config.server));
  RETURN_IF_ERROR(ReadTls(tls, file + ": tls", config.server.tls));
  RETURN_IF_ERROR(ReadRegistry(registry, file + ": registry", config));
  RETURN_IF_ERROR(ReadDispatch(dispatch, file + ": dispatch", config.dispatcher));
  return config;
}

absl::StatusOr<CoordinatorConfig> ReadCoordinatorConfig(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    return MakeError(absl::StatusCode::kNotFound, "CONFIG_UNREADABLE",
                     absl::StrCat(path,
                                  ": the configuration cannot be read; give the path of a "
                                  "file as config/coordinator.yaml"));
  }
  return ParseCoordinatorConfig(text.str(), path);
}

std::string DefaultListenAddress() {
  if (geteuid() == 0) return "unix:/run/solward/coordinator.sock";
  const std::string runtime = Environment("XDG_RUNTIME_DIR");
  const std::string folder = runtime.empty() ? absl::StrCat("/tmp/solward-", geteuid()) : runtime;
  return absl::StrCat("unix:", folder, "/solward/coordinator.sock");
}

std::string DefaultStateDir() {
  const std::string state = Environment("XDG_STATE_HOME");
  if (!state.empty()) return state + "/solward";
  if (geteuid() == 0) return "/var/lib/solward";
  return Environment("HOME") + "/.local/state/solward";
}

}  // namespace solward::service
