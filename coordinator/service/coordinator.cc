#include "coordinator/service/coordinator.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/status.h"
#include "coordinator/service/analysis_handler.h"
#include "coordinator/service/analysis_service.h"
#include "coordinator/service/event_hub.h"
#include "coordinator/service/registry_service.h"
#include "coordinator/store/sqlite_store.h"

namespace solward::service {
namespace {

namespace fs = std::filesystem;

// How long calls that are not watched analyses may take to end at a shutdown.
constexpr absl::Duration kServerGrace = absl::Seconds(2);

absl::Status FolderError(const std::string& path, const std::string& why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "STATE_DIR_UNUSABLE",
                   absl::StrCat(path, ": cannot be used (", why,
                                "); choose a folder this user may write, with --state-dir"));
}

// Makes the folder and those above it; one that is there is taken as it is.
absl::Status MakeFolder(const std::string& path, mode_t mode) {
  std::error_code error;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) return FolderError(path, error.message());
  if (mkdir(path.c_str(), mode) == 0 || (errno == EEXIST && fs::is_directory(path, error))) {
    return absl::OkStatus();
  }
  return FolderError(path, std::strerror(errno));
}

// An exclusive lock on the state folder while it lives.
class StateLock {
 public:
  static absl::StatusOr<std::unique_ptr<StateLock>> Take(const std::string& state_dir) {
    const std::string path = state_dir + "/lock";
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return FolderError(path, std::strerror(errno));
    auto lock = std::make_unique<StateLock>(fd);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
    return MakeError(absl::StatusCode::kFailedPrecondition, "STATE_IN_USE",
                     absl::StrCat(state_dir,
                                  ": another coordinator uses this state folder; stop "
                                  "it or choose another with --state-dir"));
  }
  explicit StateLock(int fd) : fd_(fd) {}
  ~StateLock() { close(fd_); }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  const int fd_;
};

// Whoever owns a folder can put another socket in the place of ours.
absl::Status CheckOwner(const std::string& folder) {
  struct stat info {};
  if (stat(folder.c_str(), &info) != 0) return absl::OkStatus();
  if (info.st_uid == geteuid() || info.st_uid == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, "SOCKET_FOLDER_FOREIGN",
                   absl::StrCat(folder, ": belongs to uid ", info.st_uid,
                                ", who could replace a socket in it; expected a folder of this "
                                "user or root, choose another with --listen"));
}

// Folders of the Unix sockets. Root's are open to all: the socket's own mode decides.
absl::Status MakeSocketFolders(const std::vector<std::string>& listen) {
  for (const std::string& address : listen) {
    absl::string_view path = address;
    if (!absl::ConsumePrefix(&path, "unix:")) continue;
    const fs::path folder = fs::path(std::string(path)).parent_path();
    if (folder.empty()) continue;
    RETURN_IF_ERROR(CheckOwner(folder.parent_path().string()));
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
      RETURN_IF_ERROR(MakeFolder(folder.string(), geteuid() == 0 ? 0755 : 0700));
    }
    RETURN_IF_ERROR(CheckOwner(folder.string()));
  }
  return absl::OkStatus();
}

std::string OwnCaller() { return absl::StrCat("uid:", geteuid()); }

bool OnThisMachine(absl::string_view target) {
  for (const char* prefix : {"unix:", "127.", "ipv4:127.", "localhost:", "[::1]:", "ipv6:[::1]:"}) {
    if (absl::StartsWith(target, prefix)) return true;
  }
  return false;
}

}  // namespace

// In order of construction: each may use those above it.
struct Coordinator::Parts {
  CoordinatorConfig config;
  std::unique_ptr<StateLock> lock;
  std::unique_ptr<store::Store> store;
  workflow::Knowledge knowledge{BuiltInCatalogue(), BuiltInGpuPeaks(),
                                BuiltInClassificationParameters()};
  EventHub hub;
  std::unique_ptr<delegation::Registry> registry;
  std::unique_ptr<delegation::GrpcDispatcher> dispatcher;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<AnalysisEngine> engine;
  std::unique_ptr<AnalysisHandler> handler;
  std::unique_ptr<AnalysisService> analysis_service;
  std::unique_ptr<RegistryService> registry_service;
  std::unique_ptr<RpcServer> server;
  bool stopped = false;
};

namespace {

absl::Status CheckTarget(const std::string& target, const std::string& ca_file) {
  if (OnThisMachine(target) || !ca_file.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, "TARGET_NEEDS_TLS",
                   absl::StrCat(target,
                                ": is not on this machine, and the coordinator has no "
                                "registry.specialist_ca to verify it with; configure one "
                                "or register a Unix socket or loopback address"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(CoordinatorConfig config) {
  if (config.server.listen.empty()) config.server.listen = {DefaultListenAddress()};
  if (config.state_dir.empty()) config.state_dir = DefaultStateDir();
  RETURN_IF_ERROR(MakeFolder(config.state_dir, 0700));
  auto parts = std::make_unique<Parts>();
  Parts& p = *parts;
  ASSIGN_OR_RETURN(p.lock, StateLock::Take(config.state_dir));
  ASSIGN_OR_RETURN(p.store, store::OpenSqliteStore(config.state_dir + "/coordinator.db"));

  const std::string ca_file = config.specialist_ca;
  config.registry.check_target = [ca_file](const std::string& target) {
    return CheckTarget(target, ca_file);
  };
  config.registry.dial = [ca_file](const std::string& target) {
    return DialTarget(target, OnThisMachine(target) ? std::string() : ca_file);
  };
  p.registry = std::make_unique<delegation::Registry>(config.registry);
  p.dispatcher = std::make_unique<delegation::GrpcDispatcher>(*p.registry, config.dispatcher);
  p.journal = std::make_unique<Journal>(*p.store, p.hub);
  p.engine = std::make_unique<AnalysisEngine>(
      config.engine, RunEnvironment{*p.journal, p.knowledge, *p.dispatcher});
  p.handler = std::make_unique<AnalysisHandler>(*p.store, *p.engine, *p.registry, p.knowledge,
                                                std::set<std::string>{"uid:0", OwnCaller()});
  p.analysis_service = std::make_unique<AnalysisService>(*p.handler, *p.store, p.hub, *p.registry);
  std::set<std::string> registrars = {"uid:0", OwnCaller(), "loopback"};
  registrars.insert(config.registry_callers.begin(), config.registry_callers.end());
  p.registry_service = std::make_unique<RegistryService>(*p.registry, std::move(registrars));

  RETURN_IF_ERROR(MakeSocketFolders(config.server.listen));
  ASSIGN_OR_RETURN(p.server, RpcServer::Start(config.server, {p.analysis_service.get(),
                                                              p.registry_service.get()}));
  // Only now: their specialists come back to this server.
  RETURN_IF_ERROR(p.engine->ResumeUnfinished());
  p.config = std::move(config);
  return std::unique_ptr<Coordinator>(new Coordinator(std::move(parts)));
}

Coordinator::Coordinator(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Coordinator::~Coordinator() { Shutdown(absl::ZeroDuration()); }

const std::vector<std::string>& Coordinator::targets() const { return parts_->server->targets(); }

void Coordinator::Shutdown(absl::Duration drain) {
  Parts& p = *parts_;
  if (std::exchange(p.stopped, true)) return;
  p.engine->Stop(absl::Now() + drain, [&p] { p.dispatcher->Detach(); });
  p.hub.Close();
  p.server->Shutdown(absl::Now() + kServerGrace);
}

}  // namespace solward::service
