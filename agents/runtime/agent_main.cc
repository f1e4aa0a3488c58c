#include "agents/runtime/agent_main.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "agents/runtime/agent_options.h"
#include "agents/runtime/registration.h"
#include "agents/runtime/specialist_service.h"
#include "common/log.h"
#include "common/process.h"
#include "common/status.h"

namespace solward::runtime {
namespace {

constexpr absl::Duration kShutdownGrace = absl::Seconds(5);

struct CommandLine {
  std::string config, workspace, coordinator, ca_file, advertise, log_level;
  std::vector<std::string> listen;
  bool die_with_parent = false;
};

void AddOptions(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", SOLWARD_VERSION);
  app.add_option("--config", line.config, "YAML settings; the options below win over it");
  app.add_option("--listen", line.listen,
                 "unix:PATH or HOST:PORT; anything but a Unix socket or loopback needs TLS files");
  app.add_option("--workspace", line.workspace, "Folder of the artifacts");
  app.add_option("--coordinator", line.coordinator, "gRPC target of the coordinator");
  app.add_option("--coordinator-ca", line.ca_file, "CA file (PEM) for a coordinator behind TLS");
  app.add_option(
      "--advertise", line.advertise,
      "Target at which the coordinator dials this specialist; default: the first listener");
  app.add_option("--log-level", line.log_level, "debug, info, warning or error");
  app.add_flag("--die-with-parent", line.die_with_parent, "Stop when the parent process ends");
}

absl::StatusOr<AgentOptions> OptionsOf(const CommandLine& line, absl::string_view short_name) {
  AgentOptions options = DefaultAgentOptions(short_name);
  if (!line.config.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(line.config));
    RETURN_IF_ERROR(ApplyAgentYaml(text, line.config, options));
  }
  if (!line.listen.empty()) options.server.listen = line.listen;
  if (!line.workspace.empty()) options.workspace = line.workspace;
  if (!line.coordinator.empty()) options.registration.coordinator = line.coordinator;
  if (!line.ca_file.empty()) options.registration.ca_file = line.ca_file;
  if (!line.advertise.empty()) options.registration.advertise = line.advertise;
  if (!line.log_level.empty()) options.log_level = line.log_level;
  LogLevel level;
  if (!ParseLogLevel(options.log_level, level)) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, "LOG_LEVEL_UNKNOWN",
        "log level '" + options.log_level + "': expected debug, info, warning or error");
  }
  SetLogLevel(level);
  return options;
}

// Folders of Unix sockets are made for the owner alone.
void MakeSocketFolders(const std::vector<std::string>& listen) {
  for (absl::string_view address : listen) {
    if (!absl::ConsumePrefix(&address, "unix:")) continue;
    const auto folder = std::filesystem::path(std::string(address)).parent_path();
    std::error_code ignored;  // Start says what is wrong with the address
    if (std::filesystem::create_directories(folder, ignored)) {
      std::filesystem::permissions(folder, std::filesystem::perms::owner_all, ignored);
    }
  }
}

absl::Status Serve(AgentOptions options, Specialist& specialist) {
  std::error_code ignored;
  std::filesystem::create_directories(options.workspace, ignored);
  ASSIGN_OR_RETURN(const std::unique_ptr<Workspace> workspace,
                   Workspace::Open(options.workspace, options.workspace_limits));
  ASSIGN_OR_RETURN(const std::unique_ptr<SpecialistService> service,
                   SpecialistService::Create(specialist, *workspace, options.service));
  MakeSocketFolders(options.server.listen);
  ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                   RpcServer::Start(options.server, {service->grpc_service()}));
  for (const std::string& target : server->targets()) {
    Log(LogLevel::kInfo, "ready",
        {{"name", service->Description().name()},
         {"target", target},
         {"instance", workspace->instance_id()}});
  }
  std::unique_ptr<Registration> registration;
  if (!options.registration.coordinator.empty()) {
    if (options.registration.advertise.empty()) {
      options.registration.advertise = server->targets().front();
    }
    registration = Registration::Start(
        options.registration, [&service] { return service->Description(); },
        [&service] { return service->running_delegations(); });
  }
  const int signal = WaitForStopSignal();
  Log(LogLevel::kInfo, "stopping", {{"signal", std::to_string(signal)}});
  registration.reset();
  service->Shutdown();
  server->Shutdown(absl::Now() + kShutdownGrace);
  return absl::OkStatus();
}

}  // namespace

int AgentMain(int argc, char** argv, absl::string_view short_name,
              const std::function<std::unique_ptr<Specialist>()>& make_specialist) {
  CLI::App app("Solward specialist: " + std::string(short_name));
  CommandLine line;
  AddOptions(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  BlockStopSignals();
  if (line.die_with_parent) DieWithParent();
  absl::StatusOr<AgentOptions> options = OptionsOf(line, short_name);
  absl::Status status = options.status();
  if (status.ok()) {
    const std::unique_ptr<Specialist> specialist = make_specialist();
    status = Serve(*std::move(options), *specialist);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", argv[0], std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace solward::runtime
