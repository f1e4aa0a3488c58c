// Configuration of a coordinator: config/coordinator.yaml, then the command line.
#ifndef SOLWARD_COORDINATOR_SERVICE_COORDINATOR_CONFIG_H_
#define SOLWARD_COORDINATOR_SERVICE_COORDINATOR_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/log.h"
#include "common/rpc_server.h"
#include "coordinator/delegation/grpc_dispatcher.h"
#include "coordinator/delegation/registry.h"
#include "coordinator/service/analysis_engine.h"

namespace solward::service {

struct CoordinatorConfig {
  RpcServerOptions server;  // no address: the default socket
  std::string state_dir;    // empty: the default folder
  LogLevel log_level = LogLevel::kInfo;
  EngineOptions engine;
  delegation::RegistryOptions registry;
  delegation::DispatcherOptions dispatcher;
  // Who may register specialists besides root, the server's own user and
  // loopback ("uid:1001", "tls:CN=node7").
  std::vector<std::string> registry_callers;
  // PEM file: specialists elsewhere are dialled with TLS and verified by it.
  // Without it only specialists on this machine can be dialled.
  std::string specialist_ca;
  // How long a stop waits for what runs.
  absl::Duration drain = absl::Seconds(10);
};

// INVALID_ARGUMENT (CONFIG_INVALID or as LoadYaml says) names file, key and
// what was expected; unknown keys are refused.
absl::StatusOr<CoordinatorConfig> ParseCoordinatorConfig(absl::string_view yaml,
                                                         const std::string& file);
absl::StatusOr<CoordinatorConfig> ReadCoordinatorConfig(const std::string& path);

// unix:/run/solward/coordinator.sock for root, else below $XDG_RUNTIME_DIR, else
// below /tmp/solward-<uid>.
std::string DefaultListenAddress();
// $XDG_STATE_HOME/solward, else ~/.local/state/solward; /var/lib/solward for root.
std::string DefaultStateDir();

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_COORDINATOR_CONFIG_H_
