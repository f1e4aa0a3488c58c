// A specialist service on real sockets around a test double, for its tests.
#ifndef SOLWARD_AGENTS_RUNTIME_SPECIALIST_SERVICE_FIXTURE_H_
#define SOLWARD_AGENTS_RUNTIME_SPECIALIST_SERVICE_FIXTURE_H_

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "agents/runtime/specialist_service.h"
#include "common/rpc_server.h"
#include "common/sha256.h"
#include "common/status_matchers.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::runtime {

inline constexpr absl::Duration kLong = absl::Seconds(30);

// A test double: what Run does is said by the test.
class ScriptedSpecialist final : public Specialist {
 public:
  using Script = std::function<absl::StatusOr<v1::DelegationResult>(const v1::DelegationRequest&,
                                                                    DelegationContext&)>;

  v1::SpecialistDescription Describe() const override {
    v1::SpecialistDescription description;
    description.set_name("perf-test-specialist");
    description.set_version("7");
    (*description.mutable_labels())["own"] = "label";
    return description;
  }

  absl::StatusOr<v1::DelegationResult> Run(const v1::DelegationRequest& request,
                                           DelegationContext& context) override {
    Script script;
    {
      absl::MutexLock lock(&mutex_);
      ++runs_;
      script = script_;
    }
    return script(request, context);
  }

  absl::StatusOr<std::vector<v1::RecomputedMetric>> Recompute(
      const std::vector<v1::Metric>& metrics, Workspace& /*workspace*/) override {
    std::vector<v1::RecomputedMetric> verdicts;
    for (const v1::Metric& metric : metrics) {
      if (metric.id() == "lost") continue;
      if (metric.id() == "thrown") throw std::runtime_error("a library threw");
      v1::RecomputedMetric& verdict = verdicts.emplace_back();
      verdict.set_key(metric.key());
      verdict.set_value(metric.value());
      verdict.set_verdict(v1::RECOMPUTE_VERDICT_MATCHES);
    }
    return verdicts;
  }

  void SetScript(Script script) {
    absl::MutexLock lock(&mutex_);
    script_ = std::move(script);
  }
  int runs() const {
    absl::MutexLock lock(&mutex_);
    return runs_;
  }

 private:
  mutable absl::Mutex mutex_;
  Script script_ ABSL_GUARDED_BY(mutex_) = [](const v1::DelegationRequest&, DelegationContext&) {
    return v1::DelegationResult();
  };
  int runs_ ABSL_GUARDED_BY(mutex_) = 0;
};

inline v1::DelegationResult ResultWithDriver(const std::string& driver) {
  v1::DelegationResult result;
  result.mutable_environment()->set_driver_version(driver);
  return result;
}

// Waits for the stop, as a well-behaved specialist does.
inline absl::StatusOr<v1::DelegationResult> WaitForStop(const v1::DelegationRequest& /*request*/,
                                                        DelegationContext& context) {
  absl::Notification stopped;
  const std::stop_callback wake(context.stop, [&] { stopped.Notify(); });
  if (!stopped.WaitForNotificationWithTimeout(kLong)) return absl::InternalError("never stopped");
  return absl::CancelledError("stopped");
}

inline v1::DelegateRequest RequestWithKey(const std::string& key) {
  v1::DelegateRequest request;
  request.mutable_delegation()->set_key(key);
  request.mutable_delegation()->mutable_workload()->mutable_captures()->add_captures()->set_id(
      "art-1");
  return request;
}

struct Answer {
  absl::Status status;
  std::vector<v1::DelegateResponse> responses;

  const v1::DelegationResult& result() const { return responses.back().result(); }
  std::string id() const { return responses.empty() ? "" : responses.front().delegation_id(); }
};

class SpecialistServiceTest : public ::testing::Test {
 protected:
  SpecialistServiceTest() {
    std::string pattern = ::testing::TempDir() + "/serviceXXXXXX";
    folder_ = mkdtemp(pattern.data());
    options_.delegations.concurrency = 1;
    options_.delegations.queue = 1;
    StartUp();
  }
  ~SpecialistServiceTest() override {
    ShutDown();
    std::filesystem::remove_all(folder_);
  }

  void StartUp() {
    auto workspace = Workspace::Open(folder_ + "/workspace", limits_);
    ASSERT_THAT(workspace, solward::testing::IsOk());
    workspace_ = *std::move(workspace);
    auto service = SpecialistService::Create(specialist_, *workspace_, options_);
    ASSERT_THAT(service, solward::testing::IsOk());
    service_ = *std::move(service);
    RpcServerOptions rpc;
    rpc.listen = {"unix:" + folder_ + "/s.sock", "127.0.0.1:0"};
    auto server = RpcServer::Start(rpc, {service_->grpc_service()});
    ASSERT_THAT(server, solward::testing::IsOk());
    server_ = *std::move(server);
    // Two callers: this user by the Unix socket, and "loopback".
    stub_ = v1::SpecialistService::NewStub(DialTarget(server_->targets()[0]));
    other_stub_ = v1::SpecialistService::NewStub(DialTarget(server_->targets()[1]));
  }

  void ShutDown() {
    service_->Shutdown();
    server_.reset();
    service_.reset();
    workspace_.reset();
  }

  static void SetDeadline(grpc::ClientContext& context, absl::Duration timeout = kLong) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }

  static Answer Read(grpc::ClientReader<v1::DelegateResponse>& stream) {
    Answer answer;
    v1::DelegateResponse response;
    while (stream.Read(&response)) answer.responses.push_back(response);
    answer.status = FromGrpcStatus(stream.Finish());
    return answer;
  }

  Answer Delegate(const v1::DelegateRequest& request, absl::Duration timeout = kLong) {
    return DelegateAs(*stub_, request, timeout);
  }

  static Answer DelegateAs(v1::SpecialistService::Stub& stub, const v1::DelegateRequest& request,
                           absl::Duration timeout = kLong) {
    grpc::ClientContext context;
    SetDeadline(context, timeout);
    return Read(*stub.Delegate(&context, request));
  }

  // A call whose first response has come.
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::DelegateResponse>> stream;
    v1::DelegateResponse first;
  };
  std::unique_ptr<Call> Begin(const v1::DelegateRequest& request) {
    return BeginAs(*stub_, request);
  }
  static std::unique_ptr<Call> BeginAs(v1::SpecialistService::Stub& stub,
                                       const v1::DelegateRequest& request) {
    auto call = std::make_unique<Call>();
    SetDeadline(call->context);
    call->stream = stub.Delegate(&call->context, request);
    EXPECT_TRUE(call->stream->Read(&call->first));
    return call;
  }

  absl::StatusOr<v1::CancelOutcome> CancelAs(v1::SpecialistService::Stub& stub,
                                             const v1::CancelDelegationRequest& request) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::CancelDelegationResponse response;
    const grpc::Status status = stub.CancelDelegation(&context, request, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response.outcome();
  }
  absl::StatusOr<v1::CancelOutcome> CancelKey(const std::string& key) {
    v1::CancelDelegationRequest request;
    request.set_key(key);
    return CancelAs(*stub_, request);
  }

  absl::StatusOr<v1::PutCaptureResponse> Put(const std::vector<v1::PutCaptureRequest>& parts) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PutCaptureResponse response;
    auto writer = stub_->PutCapture(&context, &response);
    for (const auto& part : parts) {
      if (!writer->Write(part)) break;
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }

  static v1::PutCaptureRequest Header(const std::string& label, const std::string& data) {
    v1::PutCaptureRequest part;
    part.mutable_header()->set_label(label);
    part.mutable_header()->set_size(data.size());
    part.mutable_header()->set_sha256(Sha256Hex(data));
    return part;
  }
  static v1::PutCaptureRequest Data(const std::string& data) {
    v1::PutCaptureRequest part;
    part.set_data(data);
    return part;
  }

  absl::StatusOr<std::vector<v1::ReadArtifactResponse>> ReadArtifact(const std::string& id,
                                                                     uint64_t offset,
                                                                     uint64_t length) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::ReadArtifactRequest request;
    request.set_artifact_id(id);
    request.set_offset(offset);
    request.set_length(length);
    auto stream = stub_->ReadArtifact(&context, request);
    std::vector<v1::ReadArtifactResponse> responses;
    v1::ReadArtifactResponse response;
    while (stream->Read(&response)) responses.push_back(response);
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return responses;
  }

  std::string folder_;
  WorkspaceLimits limits_;
  SpecialistServiceOptions options_;
  ScriptedSpecialist specialist_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<SpecialistService> service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::SpecialistService::Stub> stub_, other_stub_;
};

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_SPECIALIST_SERVICE_FIXTURE_H_
