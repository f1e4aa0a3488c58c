#include "common/unix_listener.h"

#include <fcntl.h>
#include <grpcpp/server.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/log.h"
#include "common/peer_credentials.h"
#include "common/status.h"

namespace solward {
namespace {

constexpr int kBacklog = 128;
// A higher number makes the kernel allocate a larger descriptor table.
constexpr int kHighestNumber = 65'536;

// Descriptor numbers of Unix connections and the users behind them. There is
// one per process because descriptor numbers are per process; gRPC gives a
// service nothing but the peer's name to find the connection by.
class ConnectionTable {
 public:
  static ConnectionTable& Get() {
    static ConnectionTable table;
    return table;
  }

  // Duplicates `fd` to a number above the last one given, so that a call which
  // still runs on a closed connection is not taken for another user's: a number
  // comes again only after all others of the range. The caller closes `fd`.
  absl::StatusOr<int> Adopt(int fd, uid_t uid) {
    absl::MutexLock lock(&mutex_);
    const int limit = NumberLimit();
    const int lowest = limit / 2;
    if (next_ < lowest || next_ >= limit) next_ = lowest;
    int number = fcntl(fd, F_DUPFD_CLOEXEC, next_);
    if (number < 0 && (errno == EMFILE || errno == EINVAL)) {
      number = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    }
    if (number < 0) {
      return MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_CONNECTIONS",
                       absl::StrCat("cannot keep one more connection: ", std::strerror(errno),
                                    "; raise the limit of open files (ulimit -n)"));
    }
    next_ = number + 1;
    users_[number] = uid;
    return number;
  }

  std::optional<uid_t> UidOf(int number) const {
    absl::MutexLock lock(&mutex_);
    const auto found = users_.find(number);
    if (found == users_.end()) return std::nullopt;
    return found->second;
  }

 private:
  static int NumberLimit() {
    struct rlimit limit {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
    return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kHighestNumber));
  }

  mutable absl::Mutex mutex_;
  // At most one entry per descriptor number; an entry lives until its number
  // comes again.
  std::map<int, uid_t> users_ ABSL_GUARDED_BY(mutex_);
  int next_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::Status AddressError(absl::StatusCode code, absl::string_view reason, const std::string& path,
                          absl::string_view what) {
  return MakeError(code, reason, absl::StrCat("unix:", path, ": ", what));
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return AddressError(
        absl::StatusCode::kInvalidArgument, "BAD_LISTEN_ADDRESS", path,
        absl::StrCat("a Unix socket path has 1 to ", sizeof(address.sun_path) - 1,
                     " bytes, this one ", path.size(), "; choose a shorter folder"));
  }
  if (path.find('\0') != std::string::npos) {
    return AddressError(absl::StatusCode::kInvalidArgument, "BAD_LISTEN_ADDRESS", path,
                        "the path holds a zero byte");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Whether a process accepts on the socket file.
bool IsLive(const sockaddr_un& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return true;  // Not known: rather refuse than take it away.
  const int rc = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = rc == 0 ? 0 : errno;
  close(fd);
  // EAGAIN: somebody listens and the backlog is full.
  return error != ECONNREFUSED && error != ENOENT;
}

absl::Status RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return AddressError(absl::StatusCode::kInvalidArgument, "BAD_LISTEN_ADDRESS", path,
                        "there is a file that is not a socket; remove it or choose another path");
  }
  if (IsLive(address)) {
    return AddressError(absl::StatusCode::kUnavailable, "ADDRESS_IN_USE", path,
                        "another process listens there; stop it or choose another path");
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return AddressError(absl::StatusCode::kUnavailable, "ADDRESS_IN_USE", path,
                        absl::StrCat("cannot replace the stale socket: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

struct UnixListener::State {
  std::string path;
  int listen_fd = -1;
  int stop_fd = -1;
  int max_connections = 0;
  dev_t device = 0;
  ino_t inode = 0;
  grpc::Server* server = nullptr;
  // Touched by the accepting thread alone: number and inode of connections.
  std::vector<std::pair<int, ino_t>> connections;
  absl::Mutex stop_mutex;
  std::jthread thread ABSL_GUARDED_BY(stop_mutex);

  void AcceptLoop();
  void AcceptOne();
  absl::StatusOr<int> Admit(int fd);
  bool HasRoom();
};

void UnixListener::State::AcceptLoop() {
  while (true) {
    pollfd wait[2] = {{listen_fd, POLLIN, 0}, {stop_fd, POLLIN, 0}};
    if (poll(wait, 2, -1) < 0 && errno != EINTR) {
      Log(LogLevel::kError, "accepting ended", {{"path", path}, {"error", std::strerror(errno)}});
      return;
    }
    if (wait[1].revents != 0) return;
    if (wait[0].revents != 0) AcceptOne();
  }
}

// Forgets connections that gRPC has closed; the number may be another file by now.
bool UnixListener::State::HasRoom() {
  if (connections.size() < static_cast<size_t>(max_connections)) return true;
  std::erase_if(connections, [](const std::pair<int, ino_t>& connection) {
    struct stat info {};
    return fstat(connection.first, &info) != 0 || info.st_ino != connection.second;
  });
  return connections.size() < static_cast<size_t>(max_connections);
}

absl::StatusOr<int> UnixListener::State::Admit(int fd) {
  if (!HasRoom()) {
    return MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_CONNECTIONS",
                     absl::StrCat("more than ", max_connections, " connections"));
  }
  ASSIGN_OR_RETURN(const uid_t uid, PeerUid(fd));
  return ConnectionTable::Get().Adopt(fd, uid);
}

void UnixListener::State::AcceptOne() {
  const int fd = accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      Log(LogLevel::kWarning, "cannot accept", {{"path", path}, {"error", std::strerror(errno)}});
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return;
  }
  const absl::StatusOr<int> number = Admit(fd);
  close(fd);
  if (!number.ok()) {
    Log(LogLevel::kWarning, "connection refused",
        {{"path", path}, {"error", std::string(number.status().message())}});
    return;
  }
  struct stat info {};
  if (fstat(*number, &info) == 0) connections.emplace_back(*number, info.st_ino);
  grpc::AddInsecureChannelFromFd(server, *number);
}

UnixListener::UnixListener(std::unique_ptr<State> state) : state_(std::move(state)) {}

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Listen(const std::string& path,
                                                                   mode_t mode,
                                                                   int max_connections) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  RETURN_IF_ERROR(RemoveStale(path, address));
  auto state = std::make_unique<State>();
  state->path = path;
  state->max_connections = max_connections;
  state->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  state->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::unique_ptr<UnixListener> listener(new UnixListener(std::move(state)));
  State& s = *listener->state_;
  // The mode before bind holds at the moment the file appears; bind takes the
  // umask off it, so a wider mode is set again afterwards.
  const bool ok =
      s.listen_fd >= 0 && s.stop_fd >= 0 && fchmod(s.listen_fd, 0600) == 0 &&
      bind(s.listen_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  if (!ok) {
    const bool taken = errno == EADDRINUSE;
    return AddressError(absl::StatusCode::kUnavailable, taken ? "ADDRESS_IN_USE" : "CANNOT_LISTEN",
                        path,
                        absl::StrCat("cannot listen: ", std::strerror(errno),
                                     errno == ENOENT ? "; the folder does not exist" : ""));
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    s.device = info.st_dev;
    s.inode = info.st_ino;
  }
  if (chmod(path.c_str(), mode) != 0 || listen(s.listen_fd, kBacklog) != 0) {
    return AddressError(absl::StatusCode::kUnavailable, "CANNOT_LISTEN", path,
                        absl::StrCat("cannot listen: ", std::strerror(errno)));
  }
  return listener;
}

void UnixListener::Serve(grpc::Server* server) {
  absl::MutexLock lock(&state_->stop_mutex);
  state_->server = server;
  state_->thread = std::jthread([state = state_.get()] { state->AcceptLoop(); });
}

void UnixListener::Stop() {
  absl::MutexLock lock(&state_->stop_mutex);
  if (state_->stop_fd >= 0) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(state_->stop_fd, &one, sizeof(one));
  }
  if (state_->thread.joinable()) state_->thread.join();
  if (state_->listen_fd < 0) return;
  struct stat info {};
  if (state_->inode != 0 && lstat(state_->path.c_str(), &info) == 0 &&
      info.st_ino == state_->inode && info.st_dev == state_->device) {
    unlink(state_->path.c_str());
  }
  // Whoever waits in the backlog is told now.
  close(std::exchange(state_->listen_fd, -1));
}

UnixListener::~UnixListener() {
  Stop();
  if (state_->stop_fd >= 0) close(state_->stop_fd);
}

const std::string& UnixListener::path() const { return state_->path; }

std::optional<uid_t> UidOfUnixPeer(absl::string_view peer) {
  int number = 0;
  if (!absl::ConsumePrefix(&peer, "fd:") || !absl::SimpleAtoi(peer, &number)) return std::nullopt;
  return ConnectionTable::Get().UidOf(number);
}

}  // namespace solward
