// One gRPC server the way every Solward process runs it: Unix socket or
// loopback by default, TLS required elsewhere, health checking and reflection
// on, sizes and streams capped, callers identified by the transport.
#ifndef SOLWARD_COMMON_RPC_SERVER_H_
#define SOLWARD_COMMON_RPC_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace solward {

struct TlsFiles {
  std::string certificate;  // PEM paths
  std::string private_key;
  std::string client_ca;  // empty: clients are not verified
};

struct RpcServerOptions {
  // "unix:/path/to.sock", "127.0.0.1:7300", "[::1]:0", or any other address
  // with TLS. Several may be given.
  std::vector<std::string> listen;
  TlsFiles tls;  // empty certificate: no TLS
  // Messages a client may send; a larger one ends its call with
  // RESOURCE_EXHAUSTED. What the server sends is its own and not capped.
  int max_message_bytes = 4 << 20;
  int max_concurrent_streams = 256;  // calls at a time on one connection
  int max_unix_connections = 512;    // at a time on one Unix socket
  // Permissions of Unix sockets: 0600 for the owner alone, 0666 for every user
  // of the machine (each still known by uid).
  unsigned unix_socket_mode = 0600;
};

// Runs from Start to Shutdown or destruction. Thread-safe. The services must
// outlive the server.
class RpcServer {
 public:
  // INVALID_ARGUMENT (reason LISTEN_NEEDS_TLS) for an address that is neither
  // a Unix socket nor loopback when no TLS files are given; UNAVAILABLE when
  // the address is taken. A stale Unix socket file is replaced, a live one is not.
  // Errors name the address or the file.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const RpcServerOptions& options, const std::vector<grpc::Service*>& services);
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Targets a client can dial, in the order of `listen` (port 0 resolved).
  const std::vector<std::string>& targets() const;

  // Health NOT_SERVING, then no new calls, then cancels what is left at `deadline`.
  void Shutdown(absl::Time deadline);
  void Wait();

  // Who calls, by the transport and nothing the client writes: "uid:1000" on a
  // Unix socket (SO_PEERCRED), "tls:<subject>" with a verified client
  // certificate, "tls:anonymous", or "loopback". "unknown" only for a peer that
  // is none of these; it never names a user. To be called while the call runs.
  static std::string CallerOf(const grpc::ServerContextBase& context);

 private:
  struct Impl;
  explicit RpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What a client takes from a server that it chose itself: reports and results
// may be larger than any request.
inline constexpr int kMaxReceivedMessageBytes = 64 << 20;

// A channel with Solward's keepalive and size limits; `max_message_bytes` caps
// what is sent. TLS when `ca_file` is set; a file that cannot be read gives a
// channel whose calls fail (the log says why). Does not connect yet.
std::shared_ptr<grpc::Channel> DialTarget(const std::string& target,
                                          const std::string& ca_file = "",
                                          int max_message_bytes = 4 << 20);

}  // namespace solward

#endif  // SOLWARD_COMMON_RPC_SERVER_H_
