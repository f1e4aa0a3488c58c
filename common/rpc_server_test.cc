#include "common/rpc_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/status_matchers.h"
#include "common/unix_listener.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::HasSubstr;

// Answers with who calls: the caller as the specialist's name, the transport's
// own name of the peer as its version.
class WhoAmIService final : public v1::SpecialistService::CallbackService {
 public:
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* /*request*/,
                                     v1::DescribeResponse* response) override {
    response->mutable_description()->set_name(RpcServer::CallerOf(*context));
    response->mutable_description()->set_version(context->peer());
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* Recompute(grpc::CallbackServerContext* context,
                                      const v1::RecomputeRequest* request,
                                      v1::RecomputeResponse* response) override {
    for (const v1::Metric& metric : request->metrics()) {
      response->add_metrics()->set_detail(metric.id() + metric.id());
    }
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

class RpcServerTest : public ::testing::Test {
 protected:
  RpcServerTest() {
    std::string pattern = ::testing::TempDir() + "/rpcXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~RpcServerTest() override { std::filesystem::remove_all(folder_); }

  std::string Socket(const std::string& name = "s.sock") const { return folder_ + "/" + name; }

  absl::StatusOr<std::unique_ptr<RpcServer>> Start(RpcServerOptions options) {
    return RpcServer::Start(options, {&service_});
  }
  absl::StatusOr<std::unique_ptr<RpcServer>> Start(std::vector<std::string> listen) {
    RpcServerOptions options;
    options.listen = std::move(listen);
    return Start(options);
  }

  // A call on a connection of its own.
  static absl::StatusOr<v1::SpecialistDescription> Describe(
      const std::string& target,
      std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials()) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto stub =
        v1::SpecialistService::NewStub(grpc::CreateCustomChannel(target, credentials, arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::DescribeResponse response;
    const grpc::Status status = stub->Describe(&context, {}, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response.description();
  }

  WhoAmIService service_;
  std::string folder_;
};

TEST_F(RpcServerTest, NamesTheUserAtTheOtherEndOfAUnixSocket) {
  ASSERT_OK_AND_ASSIGN(auto server, Start({"unix:" + Socket()}));
  ASSERT_EQ(server->targets(), std::vector<std::string>{"unix:" + Socket()});
  ASSERT_OK_AND_ASSIGN(auto answer, Describe(server->targets()[0]));
  EXPECT_EQ(answer.name(), absl::StrCat("uid:", getuid()));
  EXPECT_THAT(answer.version(), ::testing::StartsWith("fd:"));
}

TEST_F(RpcServerTest, AnotherUserIsAnotherCaller) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  RpcServerOptions options;
  options.listen = {"unix:" + Socket()};
  options.unix_socket_mode = 0666;
  ASSERT_OK_AND_ASSIGN(auto server, Start(options));
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  // A relay run by user 65534: what it connects to sees that user. gRPC cannot
  // be used in a forked child, so the child only pumps bytes.
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, Socket("relay.sock").c_str());
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  std::strcpy(address.sun_path, Socket().c_str());
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(1);
    const int in = accept(listener, nullptr, nullptr);
    const int out = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(out, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) _exit(2);
    const pid_t back = fork();
    const int from = back == 0 ? out : in, to = back == 0 ? in : out;
    char buffer[4096];
    for (ssize_t n; (n = read(from, buffer, sizeof(buffer))) > 0;) {
      if (write(to, buffer, n) != n) break;
    }
    shutdown(to, SHUT_WR);
    _exit(0);
  }
  ASSERT_OK_AND_ASSIGN(auto answer, Describe("unix:" + Socket("relay.sock")));
  EXPECT_EQ(answer.name(), "uid:65534");
  close(listener);
  waitpid(child, nullptr, 0);
}

TEST_F(RpcServerTest, ANumberOfAClosedConnectionIsNotGivenAgainSoon) {
  ASSERT_OK_AND_ASSIGN(auto server, Start({"unix:" + Socket()}));
  std::set<std::string> peers;
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(auto answer, Describe(server->targets()[0]));
    peers.insert(answer.version());
  }
  EXPECT_EQ(peers.size(), 20);
}

TEST_F(RpcServerTest, OnlyItsOwnerMayConnectUnlessToldOtherwise) {
  ASSERT_OK_AND_ASSIGN(auto server, Start({"unix:" + Socket()}));
  struct stat info {};
  ASSERT_EQ(stat(Socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  RpcServerOptions options;
  options.listen = {"unix:" + Socket("open.sock")};
  options.unix_socket_mode = 0666;
  ASSERT_OK_AND_ASSIGN(auto open, Start(options));
  ASSERT_EQ(stat(Socket("open.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u);
}

TEST_F(RpcServerTest, RemovesItsSocketAtTheEnd) {
  { ASSERT_OK_AND_ASSIGN(auto server, Start({"unix:" + Socket()})); }
  EXPECT_FALSE(std::filesystem::exists(Socket()));
}

TEST_F(RpcServerTest, ReplacesAStaleSocketFileButNotALiveOne) {
  const int stale = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, Socket().c_str());
  ASSERT_EQ(bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(stale);
  ASSERT_OK_AND_ASSIGN(auto server, Start({"unix:" + Socket()}));
  auto second = Start({"unix:" + Socket()});
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kUnavailable, HasSubstr(Socket())));
  EXPECT_EQ(ErrorReason(second.status()), "ADDRESS_IN_USE");
  EXPECT_THAT(Describe(server->targets()[0]), IsOk());
}

TEST_F(RpcServerTest, DoesNotReplaceAFile) {
  std::ofstream(Socket()) << "precious";
  EXPECT_THAT(Start({"unix:" + Socket()}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a socket")));
  EXPECT_TRUE(std::filesystem::exists(Socket()));
}

TEST_F(RpcServerTest, RefusesAnAddressThatIsNone) {
  for (const char* address : {"", "unix:", "7300", ":7300", "127.0.0.1:port", "127.0.0.1:70000",
                              "::1:7300", "http://127.0.0.1:80"}) {
    EXPECT_THAT(Start({address}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("listen address")))
        << address;
  }
  EXPECT_THAT(Start({"unix:/" + std::string(200, 'a')}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("107")));
}

TEST_F(RpcServerTest, LoopbackHasNoUserAndAPortOfItsOwn) {
  ASSERT_OK_AND_ASSIGN(auto server, Start({"127.0.0.1:0", "unix:" + Socket()}));
  ASSERT_EQ(server->targets().size(), 2);
  EXPECT_THAT(server->targets()[0], ::testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]+"));
  ASSERT_OK_AND_ASSIGN(auto tcp, Describe(server->targets()[0]));
  EXPECT_EQ(tcp.name(), "loopback");
  ASSERT_OK_AND_ASSIGN(auto local, Describe(server->targets()[1]));
  EXPECT_EQ(local.name(), absl::StrCat("uid:", getuid()));
  auto second = Start({server->targets()[0]});
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kUnavailable, HasSubstr(server->targets()[0])));
}

TEST_F(RpcServerTest, AnyOtherAddressNeedsTls) {
  for (const char* address :
       {"0.0.0.0:0", "[::]:0", "10.0.0.1:7300", "gpu-node:7300", "127.example.com:7300"}) {
    auto server = Start({address});
    EXPECT_THAT(server, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("TLS"))) << address;
    EXPECT_EQ(ErrorReason(server.status()), "LISTEN_NEEDS_TLS");
  }
}

// --- TLS -------------------------------------------------------------------

struct Identity {
  std::string certificate, key;  // PEM
};

// A certificate for `name`, signed by itself.
Identity SelfSigned(const std::string& name) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* cert = X509_new();
  X509_set_version(cert, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), -60);
  X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
  X509_set_pubkey(cert, key);
  X509_NAME* subject = X509_get_subject_name(cert);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(cert, subject);
  // An address needs no name resolution, whose library leaks.
  X509_EXTENSION* address =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  X509_add_ext(cert, address, -1);
  X509_EXTENSION_free(address);
  X509_sign(cert, key, EVP_sha256());
  Identity identity;
  auto text = [](BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string out(data, static_cast<size_t>(size));
    BIO_free(bio);
    return out;
  };
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, cert);
  identity.certificate = text(bio);
  bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  identity.key = text(bio);
  X509_free(cert);
  EVP_PKEY_free(key);
  return identity;
}

class RpcServerTlsTest : public RpcServerTest {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(Socket(name)) << text;
    return Socket(name);
  }

  RpcServerOptions TlsOptions(bool verify_clients) {
    RpcServerOptions options;
    options.listen = {"127.0.0.1:0"};
    options.tls.certificate = Write("server.pem", server_.certificate);
    options.tls.private_key = Write("server.key", server_.key);
    if (verify_clients) options.tls.client_ca = Write("ca.pem", client_.certificate);
    return options;
  }

  std::shared_ptr<grpc::ChannelCredentials> Credentials(const Identity* client) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = server_.certificate;
    if (client != nullptr) {
      options.pem_cert_chain = client->certificate;
      options.pem_private_key = client->key;
    }
    return grpc::SslCredentials(options);
  }

  const Identity server_ = SelfSigned("localhost");
  const Identity client_ = SelfSigned("alice");
};

TEST_F(RpcServerTlsTest, AVerifiedClientIsItsCertificatesSubject) {
  ASSERT_OK_AND_ASSIGN(auto server, Start(TlsOptions(true)));
  ASSERT_OK_AND_ASSIGN(auto answer, Describe(server->targets()[0], Credentials(&client_)));
  EXPECT_EQ(answer.name(), "tls:CN=alice");
  EXPECT_THAT(Describe(server->targets()[0], Credentials(nullptr)),
              StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
  const Identity mallory = SelfSigned("mallory");
  EXPECT_THAT(Describe(server->targets()[0], Credentials(&mallory)),
              StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
}

TEST_F(RpcServerTlsTest, WithoutClientVerificationEverybodyIsAnonymous) {
  ASSERT_OK_AND_ASSIGN(auto server, Start(TlsOptions(false)));
  ASSERT_OK_AND_ASSIGN(auto answer, Describe(server->targets()[0], Credentials(&client_)));
  EXPECT_EQ(answer.name(), "tls:anonymous");
  // The default, without TLS on the client's side, does not get in.
  EXPECT_THAT(Describe(server->targets()[0]),
              StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
}

TEST_F(RpcServerTlsTest, DialTargetChecksTheServerAgainstTheCaFile) {
  ASSERT_OK_AND_ASSIGN(auto server, Start(TlsOptions(false)));
  const std::string other = Write("other.pem", SelfSigned("localhost").certificate);
  const std::string right = Write("right.pem", server_.certificate);
  for (const auto& [ca, works] :
       {std::pair(right, true), std::pair(other, false), std::pair(Socket("missing.pem"), false)}) {
    auto stub = v1::SpecialistService::NewStub(DialTarget(server->targets()[0], ca));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::DescribeResponse response;
    EXPECT_EQ(stub->Describe(&context, {}, &response).ok(), works) << ca;
  }
}

TEST_F(RpcServerTlsTest, AMissingOrForeignTlsFileIsNamed) {
  RpcServerOptions options = TlsOptions(false);
  options.tls.private_key = Socket("none.key");
  EXPECT_THAT(Start(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(Socket("none.key"))));
  options.tls.private_key = Write("text.key", "not a key");
  EXPECT_THAT(Start(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("PEM")));
}

// --- What every server offers ----------------------------------------------

// One unary call by name, with messages as bytes: no stub of the health and
// reflection services is shipped by the distribution.
absl::StatusOr<std::string> RawCall(const std::string& target, const std::string& method,
                                    const std::string& request) {
  grpc::GenericStub stub(DialTarget(target));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const grpc::Slice slice(request);
  const grpc::ByteBuffer in(&slice, 1);
  grpc::ByteBuffer out;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, {}, &in, &out,
                 [&](grpc::Status status) { done.set_value(std::move(status)); });
  const grpc::Status status = done.get_future().get();
  if (!status.ok()) return FromGrpcStatus(status);
  grpc::Slice answer;
  if (!out.DumpToSingleSlice(&answer).ok()) return absl::InternalError("no answer");
  return std::string(answer.begin(), answer.end());
}

TEST_F(RpcServerTest, AnswersHealthChecks) {
  ASSERT_OK_AND_ASSIGN(auto server, Start({"unix:" + Socket()}));
  ASSERT_OK_AND_ASSIGN(auto answer,
                       RawCall(server->targets()[0], "/grpc.health.v1.Health/Check", ""));
  // HealthCheckResponse{status: SERVING}: field 1, varint 1.
  EXPECT_EQ(answer, std::string("\x08\x01", 2));
}

TEST_F(RpcServerTest, AnswersReflectionOnUnixAndTcp) {
  ASSERT_OK_AND_ASSIGN(auto server, Start({"unix:" + Socket(), "127.0.0.1:0"}));
  for (const std::string& target : server->targets()) {
    // ServerReflectionRequest{list_services: ""}: field 7, length 0. A client
    // stream with one message answers with one.
    grpc::GenericStub stub(DialTarget(target));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    grpc::CompletionQueue queue;
    auto call = stub.PrepareCall(
        &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
    void* tag = nullptr;
    bool ok = false;
    auto step = [&] { return queue.Next(&tag, &ok) && ok; };
    call->StartCall(nullptr);
    ASSERT_TRUE(step());
    const grpc::Slice slice(std::string("\x3a\x00", 2));
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    ASSERT_TRUE(step());
    grpc::ByteBuffer out;
    call->Read(&out, nullptr);
    ASSERT_TRUE(step()) << target;
    grpc::Slice answer;
    ASSERT_TRUE(out.DumpToSingleSlice(&answer).ok());
    EXPECT_THAT(std::string(answer.begin(), answer.end()),
                HasSubstr("solward.v1.SpecialistService"));
    context.TryCancel();
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
  }
}

TEST_F(RpcServerTest, AMessageAboveTheCapIsRefused) {
  RpcServerOptions options;
  options.listen = {"unix:" + Socket()};
  options.max_message_bytes = 64 << 10;
  ASSERT_OK_AND_ASSIGN(auto server, Start(options));
  auto stub = v1::SpecialistService::NewStub(DialTarget(server->targets()[0]));
  for (const auto& [size, code] : {std::pair(60 << 10, grpc::StatusCode::OK),
                                   std::pair(70 << 10, grpc::StatusCode::RESOURCE_EXHAUSTED)}) {
    v1::RecomputeRequest request;
    request.add_metrics()->set_id(std::string(static_cast<size_t>(size), 'x'));
    v1::RecomputeResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    // The answer is twice as large as the request: what a server sends is its own.
    EXPECT_EQ(stub->Recompute(&context, request, &response).error_code(), code) << size;
  }
}

TEST_F(RpcServerTest, MoreConnectionsThanAllowedAreClosedAndRoomComesBack) {
  RpcServerOptions options;
  options.listen = {"unix:" + Socket()};
  options.max_unix_connections = 2;
  ASSERT_OK_AND_ASSIGN(auto server, Start(options));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, Socket().c_str());
  std::vector<int> held;
  for (int i = 0; i < 2; ++i) {
    held.push_back(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(connect(held.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    // gRPC greets with its settings once the connection is admitted.
    char byte = 0;
    ASSERT_EQ(read(held.back(), &byte, 1), 1);
  }
  const int third = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(connect(third, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  char byte = 0;
  EXPECT_EQ(read(third, &byte, 1), 0) << "closed without a word";
  close(third);
  for (int fd : held) close(fd);
  auto stub = v1::SpecialistService::NewStub(DialTarget(server->targets()[0]));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::DescribeResponse response;
  EXPECT_TRUE(stub->Describe(&context, {}, &response).ok());
}

TEST_F(RpcServerTest, AfterShutdownNobodyIsServed) {
  ASSERT_OK_AND_ASSIGN(auto server, Start({"unix:" + Socket(), "127.0.0.1:0"}));
  server->Shutdown(absl::Now() + absl::Seconds(1));
  server->Wait();
  for (const std::string& target : server->targets()) EXPECT_FALSE(Describe(target).ok());
}

TEST(UnixPeerTest, OnlyAConnectionOfAListenerHasAUser) {
  for (const char* peer : {"", "fd:", "fd:0", "fd:x", "unix:", "ipv4:127.0.0.1:1", "fd:-1"}) {
    EXPECT_EQ(UidOfUnixPeer(peer), std::nullopt) << peer;
  }
}

}  // namespace
}  // namespace solward
