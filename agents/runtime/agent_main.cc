#include "agents/runtime/agent_main.h"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "agents/runtime/agent_options.h"
#include "agents/runtime/durable_file.h"
#include "agents/runtime/registration.h"
#include "agents/runtime/specialist_service.h"
#include "common/log.h"
#include "common/process.h"
#include "common/status.h"

namespace solward::runtime {
namespace {

// For streams that still carry bytes; delegations have ended by then.
constexpr absl::Duration kStreamGrace = absl::Seconds(1);

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
    ASSIGN_OR_RETURN(const std::string text, solward::ReadSmallFile(line.config));
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

// Folders of Unix sockets are made for the owner alone. The default one may lie
// below /tmp, where somebody else could have made it first.
absl::Status MakeSocketFolders(const std::vector<std::string>& listen) {
  for (absl::string_view address : listen) {
    if (!absl::ConsumePrefix(&address, "unix:")) continue;
    const std::string folder = std::filesystem::path(std::string(address)).parent_path().string();
    if (folder.empty()) continue;
    RETURN_IF_ERROR(MakeFolders(folder));
    struct stat info {};
    if (lstat(folder.c_str(), &info) == 0 && absl::StartsWith(folder, "/tmp/solward-") &&
        info.st_uid != geteuid()) {
      return MakeError(absl::StatusCode::kFailedPrecondition, "UNSAFE_FOLDER",
                       absl::StrCat(folder,
                                    " belongs to another user; choose an address with "
                                    "--listen"));
    }
  }
  return absl::OkStatus();
}

// What a coordinator can dial when --advertise does not say it.
absl::StatusOr<std::string> AdvertisedTarget(const RpcServer& server) {
  const std::string& target = server.targets().front();
  absl::string_view path = target;
  if (absl::ConsumePrefix(&path, "unix:")) {
    // The coordinator has another working directory.
    std::error_code error;
    const auto absolute = std::filesystem::absolute(std::string(path), error);
    return absl::StrCat("unix:", error ? std::string(path) : absolute.string());
  }
  if (absl::StartsWith(target, "0.0.0.0:") || absl::StartsWith(target, "[::]:")) {
    return MakeError(absl::StatusCode::kInvalidArgument, "ADVERTISE_MISSING",
                     absl::StrCat(target,
                                  " is no address that a coordinator can dial; give one "
                                  "with --advertise HOST:PORT"));
  }
  return target;
}

// Ends the process when an orderly end takes too long: a delegation that does
// not stop must not keep a node.
class EndWatchdog {
 public:
  explicit EndWatchdog(absl::Duration grace)
      : thread_([this, grace] {
          if (done_.WaitForNotificationWithTimeout(grace)) return;
          Log(LogLevel::kError, "a delegation did not stop within the grace period; ending anyway");
          std::_Exit(1);
        }) {}
  ~EndWatchdog() { done_.Notify(); }

 private:
  absl::Notification done_;
  std::jthread thread_;
};

absl::Status Serve(AgentOptions options, Specialist& specialist) {
  // Last to go: it watches over the end of everything below.
  std::optional<EndWatchdog> watchdog;
  ASSIGN_OR_RETURN(const std::unique_ptr<Workspace> workspace,
                   Workspace::Open(options.workspace, options.workspace_limits));
  ASSIGN_OR_RETURN(const std::unique_ptr<SpecialistService> service,
                   SpecialistService::Create(specialist, *workspace, options.service));
  RETURN_IF_ERROR(MakeSocketFolders(options.server.listen));
  ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                   RpcServer::Start(options.server, {service->grpc_service()}));
  std::unique_ptr<Registration> registration;
  if (!options.registration.coordinator.empty()) {
    if (options.registration.advertise.empty()) {
      ASSIGN_OR_RETURN(options.registration.advertise, AdvertisedTarget(*server));
    }
    registration = Registration::Start(
        options.registration, [&service] { return service->Description(); },
        [&service] { return service->running_delegations(); });
  }
  for (const std::string& target : server->targets()) {
    Log(LogLevel::kInfo, "ready",
        {{"name", service->Description().name()},
         {"target", target},
         {"instance", workspace->instance_id()}});
  }
  const int signal = WaitForStopSignal();
  Log(LogLevel::kInfo, "stopping", {{"signal", std::to_string(signal)}});
  watchdog.emplace(options.shutdown_grace);
  registration.reset();
  service->Shutdown();
  server->Shutdown(absl::Now() + kStreamGrace);
  Log(LogLevel::kInfo, "stopped");
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
