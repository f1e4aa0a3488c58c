// Settings of a specialist's process: a YAML file, refined by the command line.
#ifndef SOLWARD_AGENTS_RUNTIME_AGENT_OPTIONS_H_
#define SOLWARD_AGENTS_RUNTIME_AGENT_OPTIONS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agents/runtime/registration.h"
#include "agents/runtime/specialist_service.h"
#include "agents/runtime/workspace.h"
#include "common/rpc_server.h"

namespace solward::runtime {

struct AgentOptions {
  RpcServerOptions server;
  RegistrationOptions registration;  // empty coordinator: not registered anywhere
  SpecialistServiceOptions service;
  WorkspaceLimits workspace_limits;
  std::string workspace;  // folder
  // After it the process ends although a delegation has not.
  absl::Duration shutdown_grace = absl::Seconds(10);
  std::string log_level = "info";
};

// Defaults of a specialist called `short_name` ("profiling"): a Unix socket
// under $XDG_RUNTIME_DIR/solward (root: /run/solward) and a workspace under
// $XDG_STATE_HOME/solward (root: /var/lib/solward).
AgentOptions DefaultAgentOptions(absl::string_view short_name);

// Keys of config/agent_profiling.yaml; what the text does not say stays as it
// is. INVALID_ARGUMENT names the file and key; unknown keys are refused with their line.
absl::Status ApplyAgentYaml(absl::string_view yaml, absl::string_view file, AgentOptions& options);

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_AGENT_OPTIONS_H_
