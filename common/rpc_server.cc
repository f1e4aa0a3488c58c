#include "common/rpc_server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/log.h"
#include "common/status.h"
#include "common/unix_listener.h"

namespace solward {
namespace {

constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
// A client that pings more often than this is disconnected.
constexpr int kLowestPingIntervalMs = 10'000;
constexpr int kFirstReconnectMs = 50;
constexpr int kLongestReconnectMs = 10'000;
constexpr int kHandshakeMs = 10'000;
constexpr int kMaxMetadataBytes = 16 << 10;
// All connections of a server together; beyond it gRPC refuses new work.
constexpr size_t kMemoryQuotaBytes = size_t{1} << 30;
constexpr int kMaxThreads = 64;
constexpr int kMaxPemBytes = 1 << 20;

// Once gRPC's last user has gone it joins threads that may poll for ten more
// seconds; a process of ours ends without waiting for that.
void KeepGrpcUntilProcessEnd() {
  [[maybe_unused]] static const bool kept = [] {
    grpc_init();
    return true;
  }();
}

struct Address {
  std::string unix_path;  // set for a Unix socket
  std::string host;       // as gRPC wants it otherwise
  std::string port;
  bool loopback = false;
};

absl::Status BadAddress(absl::string_view address, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, "BAD_LISTEN_ADDRESS",
                   absl::StrCat("listen address '", address, "': ", what,
                                "; expected unix:/path/to.sock, 127.0.0.1:7300, [::1]:7300 or "
                                "another HOST:PORT with TLS"));
}

// 127.0.0.0/8, ::1 and the name localhost.
bool IsLoopback(absl::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  if (!absl::StartsWith(host, "127.")) return false;
  return std::all_of(host.begin(), host.end(),
                     [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

absl::StatusOr<Address> ParseAddress(const std::string& text) {
  Address address;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    // unix:///absolute/path is the URI form of the same.
    if (absl::StartsWith(rest, "///")) rest.remove_prefix(2);
    if (rest.empty()) return BadAddress(text, "the path is empty");
    address.unix_path = std::string(rest);
    return address;
  }
  if (absl::StrContains(text, "/")) return BadAddress(text, "not an address");
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return BadAddress(text, "no port");
  absl::string_view host = rest.substr(0, colon);
  const absl::string_view port = rest.substr(colon + 1);
  int number = 0;
  if (!absl::SimpleAtoi(port, &number) || number < 0 || number > 65'535) {
    return BadAddress(text, "the port is not a number from 0 to 65535");
  }
  const bool brackets = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  if (!brackets && absl::StrContains(host, ":")) {
    return BadAddress(text, "an IPv6 address stands in brackets");
  }
  address.host = std::string(host);
  address.port = std::string(port);
  address.loopback = IsLoopback(host);
  return address;
}

std::string JoinHostPort(const std::string& host, absl::string_view port) {
  return absl::StrContains(host, ":") ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

absl::StatusOr<std::string> ReadPem(const std::string& path, absl::string_view what) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(kMaxPemBytes + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
  }
  if (text.empty() || text.size() > kMaxPemBytes || !absl::StrContains(text, "-----BEGIN ")) {
    return MakeError(absl::StatusCode::kInvalidArgument, "BAD_TLS_FILE",
                     absl::StrCat(what, " ", path, ": expected a readable PEM file, found ",
                                  text.empty() ? "none" : "something else"));
  }
  return text;
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TcpCredentials(const TlsFiles& tls) {
  if (tls.certificate.empty()) {
    if (!tls.private_key.empty() || !tls.client_ca.empty()) {
      return MakeError(absl::StatusCode::kInvalidArgument, "BAD_TLS_FILE",
                       "tls: a private key or client CA is given without a certificate");
    }
    return grpc::InsecureServerCredentials();
  }
  const bool verify = !tls.client_ca.empty();
  grpc::SslServerCredentialsOptions options(
      verify ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
             : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  ASSIGN_OR_RETURN(pair.cert_chain, ReadPem(tls.certificate, "tls certificate"));
  ASSIGN_OR_RETURN(pair.private_key, ReadPem(tls.private_key, "tls private key"));
  if (verify) {
    ASSIGN_OR_RETURN(options.pem_root_certs, ReadPem(tls.client_ca, "tls client CA"));
  }
  options.pem_key_cert_pairs.push_back(std::move(pair));
  return grpc::SslServerCredentials(options);
}

void SetLimits(const RpcServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  // Also without calls: a connection that never says anything is closed.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kLowestPingIntervalMs);
  // Two servers on one port would share the calls between them.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  grpc::ResourceQuota quota("solward");
  quota.Resize(kMemoryQuotaBytes).SetMaxThreads(kMaxThreads);
  builder.SetResourceQuota(quota);
}

std::string TlsCaller(const grpc::AuthContext& auth) {
  const auto subject = auth.FindPropertyValues(GRPC_X509_SUBJECT_PROPERTY_NAME);
  if (!auth.IsPeerAuthenticated() || subject.empty()) return "tls:anonymous";
  return absl::StrCat("tls:", std::string(subject[0].data(), subject[0].size()));
}

bool UsesTls(const grpc::AuthContext& auth) {
  for (const grpc::string_ref& value :
       auth.FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME)) {
    if (value == GRPC_SSL_TRANSPORT_SECURITY_TYPE) return true;
  }
  return false;
}

}  // namespace

struct RpcServer::Impl {
  std::vector<std::unique_ptr<UnixListener>> listeners;
  std::vector<std::string> targets;
  std::unique_ptr<grpc::Server> server;
};

namespace {

// Addresses of one Start: what gRPC listens on, with the port it chose.
struct TcpPort {
  Address address;
  size_t target = 0;  // index in Impl::targets
  int chosen = 0;
};

absl::StatusOr<std::vector<TcpPort>> AddAddresses(
    const RpcServerOptions& options, grpc::ServerBuilder& builder,
    std::vector<std::unique_ptr<UnixListener>>& listeners, std::vector<std::string>& targets) {
  std::vector<TcpPort> ports;
  ASSIGN_OR_RETURN(auto credentials, TcpCredentials(options.tls));
  for (const std::string& text : options.listen) {
    ASSIGN_OR_RETURN(Address address, ParseAddress(text));
    if (!address.unix_path.empty()) {
      ASSIGN_OR_RETURN(auto listener,
                       UnixListener::Listen(address.unix_path, options.unix_socket_mode,
                                            options.max_unix_connections));
      targets.push_back(absl::StrCat("unix:", listener->path()));
      listeners.push_back(std::move(listener));
      continue;
    }
    if (!address.loopback && options.tls.certificate.empty()) {
      return MakeError(absl::StatusCode::kInvalidArgument, "LISTEN_NEEDS_TLS",
                       absl::StrCat("listen address '", text,
                                    "' is neither a Unix socket nor loopback: give TLS files "
                                    "(tls.certificate, tls.private_key) or listen on "
                                    "127.0.0.1:",
                                    address.port));
    }
    ports.push_back({address, targets.size(), 0});
    targets.push_back(text);
  }
  // `ports` does not grow any more: gRPC keeps the pointers until it has started.
  for (TcpPort& port : ports) {
    builder.AddListeningPort(JoinHostPort(port.address.host, port.address.port), credentials,
                             &port.chosen);
  }
  return ports;
}

}  // namespace

RpcServer::RpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const RpcServerOptions& options, const std::vector<grpc::Service*>& services) {
  if (options.listen.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "BAD_LISTEN_ADDRESS",
                     "no listen address; expected at least one, such as unix:/path/to.sock");
  }
  KeepGrpcUntilProcessEnd();
  grpc::EnableDefaultHealthCheckService(true);
  // Named here so that a static link keeps the plugin.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  SetLimits(options, builder);
  auto impl = std::make_unique<Impl>();
  ASSIGN_OR_RETURN(const std::vector<TcpPort> ports,
                   AddAddresses(options, builder, impl->listeners, impl->targets));
  for (grpc::Service* service : services) builder.RegisterService(service);
  impl->server = builder.BuildAndStart();
  const auto taken = std::find_if(ports.begin(), ports.end(),
                                  [](const TcpPort& port) { return port.chosen == 0; });
  if (impl->server == nullptr || taken != ports.end()) {
    return MakeError(absl::StatusCode::kUnavailable, "ADDRESS_IN_USE",
                     absl::StrCat("cannot listen on ", absl::StrJoin(options.listen, ", "),
                                  ": an address is taken, is not this machine's, or the TLS files "
                                  "do not fit each other"));
  }
  for (const TcpPort& port : ports) {
    impl->targets[port.target] = JoinHostPort(port.address.host, absl::StrCat(port.chosen));
  }
  for (auto& listener : impl->listeners) listener->Serve(impl->server.get());
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(impl)));
}

RpcServer::~RpcServer() {
  Shutdown(absl::Now());
  impl_->server->Wait();
}

const std::vector<std::string>& RpcServer::targets() const { return impl_->targets; }

void RpcServer::Shutdown(absl::Time deadline) {
  if (auto* health = impl_->server->GetHealthCheckService(); health != nullptr) {
    health->SetServingStatus(false);
  }
  for (auto& listener : impl_->listeners) listener->Stop();
  impl_->server->Shutdown(absl::ToChronoTime(deadline));
}

void RpcServer::Wait() { impl_->server->Wait(); }

std::string RpcServer::CallerOf(const grpc::ServerContextBase& context) {
  const std::string peer = context.peer();
  if (absl::StartsWith(peer, "fd:")) {
    const std::optional<uid_t> uid = UidOfUnixPeer(peer);
    return uid.has_value() ? absl::StrCat("uid:", *uid) : "unknown";
  }
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth != nullptr && UsesTls(*auth)) return TlsCaller(*auth);
  if (absl::StartsWith(peer, "ipv4:") || absl::StartsWith(peer, "ipv6:")) return "loopback";
  return "unknown";
}

std::shared_ptr<grpc::Channel> DialTarget(const std::string& target, const std::string& ca_file,
                                          int max_message_bytes) {
  KeepGrpcUntilProcessEnd();
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(max_message_bytes);
  arguments.SetMaxReceiveMessageSize(kMaxReceivedMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // The other end is often a process of this machine that is just starting.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnectMs);
  // Proxies are for the outside; a socket of this machine or cluster is not.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (ca_file.empty()) {
    return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  }
  grpc::SslCredentialsOptions options;
  absl::StatusOr<std::string> roots = ReadPem(ca_file, "CA file");
  if (!roots.ok()) {
    Log(LogLevel::kError, "no connection",
        {{"target", target}, {"error", std::string(roots.status().message())}});
    // An empty text would mean the machine's own authorities.
    roots = "unreadable";
  }
  options.pem_root_certs = *std::move(roots);
  return grpc::CreateCustomChannel(target, grpc::SslCredentials(options), arguments);
}

}  // namespace solward
