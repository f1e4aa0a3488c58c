// solward-coordinator: owns analyses, asks specialists, serves reports.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/process.h"
#include "common/status.h"
#include "coordinator/service/coordinator.h"

namespace solward::service {
namespace {

struct CommandLine {
  std::string config, state_dir, log_level;
  std::vector<std::string> listen;
  bool die_with_parent = false;
};

void Describe(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", std::string("solward-coordinator ") + SOLWARD_VERSION);
  app.add_option("--config", line.config, "YAML file as config/coordinator.yaml");
  app.add_option("--listen", line.listen,
                 "Address to serve: unix:/path, 127.0.0.1:7300, or any other with TLS files in "
                 "the configuration. May be given several times. Default: " +
                     DefaultListenAddress());
  app.add_option("--state-dir", line.state_dir,
                 "Folder of analyses and reports. Default: " + DefaultStateDir());
  app.add_option("--log-level", line.log_level, "debug, info, warning or error");
  app.add_flag("--die-with-parent", line.die_with_parent,
               "End when the process that started this one ends");
  app.footer("Example: solward-coordinator --listen 127.0.0.1:7300 --state-dir /var/lib/solward");
}

// What the command line says comes before what the file says.
absl::StatusOr<CoordinatorConfig> Configure(const CommandLine& line) {
  CoordinatorConfig config;
  if (!line.config.empty()) {
    ASSIGN_OR_RETURN(config, ReadCoordinatorConfig(line.config));
  }
  if (!line.listen.empty()) config.server.listen = line.listen;
  if (!line.state_dir.empty()) config.state_dir = line.state_dir;
  if (!line.log_level.empty() && !ParseLogLevel(line.log_level, config.log_level)) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, "LOG_LEVEL_UNKNOWN",
        absl::StrCat("--log-level ", line.log_level, ": debug, info, warning or error expected"));
  }
  return config;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "solward-coordinator: %s\n", std::string(status.message()).c_str());
  return status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
}

int Serve(const CommandLine& line) {
  BlockStopSignals();
  if (line.die_with_parent) DieWithParent();
  absl::StatusOr<CoordinatorConfig> config = Configure(line);
  if (!config.ok()) return Fail(config.status());
  SetLogLevel(config->log_level);
  const absl::Duration drain = config->drain;
  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = Coordinator::Start(*std::move(config));
  if (!coordinator.ok()) return Fail(coordinator.status());
  for (const std::string& target : (*coordinator)->targets()) {
    Log(LogLevel::kInfo, "ready", {{"target", target}, {"version", SOLWARD_VERSION}});
  }
  Log(LogLevel::kInfo, "stopping", {{"signal", std::to_string(WaitForStopSignal())}});
  // A second signal ends at once.
  UnblockStopSignals();
  (*coordinator)->Shutdown(drain);
  Log(LogLevel::kInfo, "stopped");
  return 0;
}

}  // namespace
}  // namespace solward::service

int main(int argc, char** argv) {
  try {
    solward::service::CommandLine line;
    CLI::App app("Takes performance questions, asks specialists, classifies, writes reports.");
    solward::service::Describe(app, line);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : 2;
    }
    return solward::service::Serve(line);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "solward-coordinator: %s\n", error.what());
    return 1;
  }
}
