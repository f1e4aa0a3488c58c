// A Unix socket whose connections are served by a gRPC server that knows which
// user is at the other end.
//
// gRPC names the peer of every Unix connection "unix:" and nothing else, so the
// socket is accepted here: the user is read with SO_PEERCRED, the connection
// moves to a file descriptor number that is not used again soon, and gRPC gets
// it under the peer name "fd:<number>". The name comes from the transport; a
// client cannot write it.
#ifndef SOLWARD_COMMON_UNIX_LISTENER_H_
#define SOLWARD_COMMON_UNIX_LISTENER_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grpc {
class Server;
}

namespace solward {

// Thread-safe.
class UnixListener {
 public:
  // Binds and listens; no connection is accepted before Serve. A stale socket
  // file is replaced. UNAVAILABLE (ADDRESS_IN_USE) when another process listens
  // there, INVALID_ARGUMENT for a path that cannot be a socket.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Listen(const std::string& path, mode_t mode,
                                                              int max_connections);
  ~UnixListener();

  // Accepts into `server`, which must outlive this or the call of Stop.
  void Serve(grpc::Server* server);
  // Accepts nothing more and removes the socket file when it is still this
  // one; connections stay. Idempotent.
  void Stop();

  const std::string& path() const;

 private:
  struct State;
  explicit UnixListener(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The user of the connection that gRPC names `peer`; nullopt when the peer is
// not a connection of a UnixListener of this process.
std::optional<uid_t> UidOfUnixPeer(absl::string_view peer);

}  // namespace solward

#endif  // SOLWARD_COMMON_UNIX_LISTENER_H_
