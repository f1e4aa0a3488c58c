#include "agents/runtime/specialist_service.h"

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
#include "common/rpc_server.h"
#include "common/sha256.h"
#include "common/status_matchers.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::runtime {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(30);

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

v1::DelegationResult ResultWithDriver(const std::string& driver) {
  v1::DelegationResult result;
  result.mutable_environment()->set_driver_version(driver);
  return result;
}

// Waits for the stop, as a well-behaved specialist does.
absl::StatusOr<v1::DelegationResult> WaitForStop(const v1::DelegationRequest& /*request*/,
                                                 DelegationContext& context) {
  absl::Notification stopped;
  const std::stop_callback wake(context.stop, [&] { stopped.Notify(); });
  if (!stopped.WaitForNotificationWithTimeout(kLong)) return absl::InternalError("never stopped");
  return absl::CancelledError("stopped");
}

v1::DelegateRequest RequestWithKey(const std::string& key) {
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
    ASSERT_THAT(workspace, IsOk());
    workspace_ = *std::move(workspace);
    auto service = SpecialistService::Create(specialist_, *workspace_, options_);
    ASSERT_THAT(service, IsOk());
    service_ = *std::move(service);
    RpcServerOptions rpc;
    rpc.listen = {"unix:" + folder_ + "/s.sock", "127.0.0.1:0"};
    auto server = RpcServer::Start(rpc, {service_->grpc_service()});
    ASSERT_THAT(server, IsOk());
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

TEST_F(SpecialistServiceTest, DescribesTheSpecialistAndThisInstance) {
  ShutDown();
  options_.labels["site"] = "lab";
  options_.delegations.concurrency = 3;
  StartUp();
  grpc::ClientContext context;
  v1::DescribeResponse response;
  ASSERT_TRUE(stub_->Describe(&context, {}, &response).ok());
  EXPECT_EQ(response.description().name(), "perf-test-specialist");
  EXPECT_EQ(response.description().version(), "7");
  EXPECT_EQ(response.description().instance_id(), workspace_->instance_id());
  EXPECT_EQ(response.description().concurrency(), 3);
  EXPECT_EQ(response.description().labels().at("own"), "label");
  EXPECT_EQ(response.description().labels().at("site"), "lab");
}

// --- Delegate --------------------------------------------------------------

TEST_F(SpecialistServiceTest, StreamsProgressAndEndsWithOneResult) {
  specialist_.SetScript([](const v1::DelegationRequest& request, DelegationContext& context) {
    context.progress(v1::DELEGATION_PHASE_READING, "reading " + request.key(), 0.5);
    v1::DelegationResult result = ResultWithDriver("570.1");
    result.add_artifacts()->set_id("art-1");
    return result;
  });
  const Answer answer = Delegate(RequestWithKey("k1"));
  ASSERT_THAT(answer.status, IsOk());
  ASSERT_EQ(answer.responses.size(), 3);
  EXPECT_EQ(answer.responses[0].progress().phase(), v1::DELEGATION_PHASE_QUEUED);
  EXPECT_EQ(answer.responses[1].progress().phase(), v1::DELEGATION_PHASE_READING);
  EXPECT_EQ(answer.responses[1].progress().message(), "reading k1");
  EXPECT_EQ(answer.responses[1].progress().fraction(), 0.5);
  EXPECT_EQ(answer.result().environment().driver_version(), "570.1");
  EXPECT_EQ(answer.result().artifacts(0).specialist_instance(), workspace_->instance_id());
  for (const auto& response : answer.responses) {
    EXPECT_THAT(response.delegation_id(), ::testing::StartsWith("delegation-"));
    EXPECT_EQ(response.delegation_id(), answer.id());
  }
}

TEST_F(SpecialistServiceTest, ARepeatReturnsTheFirstResultAlsoAfterARestart) {
  specialist_.SetScript([](auto&, auto&) { return ResultWithDriver("first"); });
  const Answer first = Delegate(RequestWithKey("k"));
  ASSERT_THAT(first.status, IsOk());
  specialist_.SetScript([](auto&, auto&) { return ResultWithDriver("second"); });
  for (int round = 0; round < 2; ++round) {
    const Answer repeat = Delegate(RequestWithKey("k"));
    ASSERT_THAT(repeat.status, IsOk());
    EXPECT_EQ(repeat.result().environment().driver_version(), "first");
    EXPECT_EQ(repeat.id(), first.id());
    EXPECT_EQ(specialist_.runs(), 1);
    ShutDown();
    StartUp();
  }
}

TEST_F(SpecialistServiceTest, TheSameKeyWithAnotherRequestAlreadyExists) {
  ASSERT_THAT(Delegate(RequestWithKey("k")).status, IsOk());
  v1::DelegateRequest other = RequestWithKey("k");
  other.mutable_delegation()->mutable_context()->set_dtype(v1::DTYPE_FP16);
  for (int round = 0; round < 2; ++round) {
    const absl::Status status = Delegate(other).status;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'k'")));
    EXPECT_EQ(ErrorReason(status), "KEY_NAMES_ANOTHER_REQUEST");
    ShutDown();
    StartUp();
  }
  EXPECT_EQ(specialist_.runs(), 1);
}

TEST_F(SpecialistServiceTest, MapsInAnyOrderAreTheSameRequest) {
  v1::DelegateRequest one = RequestWithKey("k"), two = RequestWithKey("k");
  auto& a = *one.mutable_delegation()->mutable_context()->add_operations()->mutable_dimensions();
  auto& b = *two.mutable_delegation()->mutable_context()->add_operations()->mutable_dimensions();
  for (int i = 0; i < 20; ++i) a[absl::StrCat("d", i)] = i;
  for (int i = 19; i >= 0; --i) b[absl::StrCat("d", i)] = i;
  ASSERT_THAT(Delegate(one).status, IsOk());
  EXPECT_THAT(Delegate(two).status, IsOk());
}

TEST_F(SpecialistServiceTest, AKeyBelongsToItsCaller) {
  const Answer mine = Delegate(RequestWithKey("k"));
  v1::DelegateRequest other = RequestWithKey("k");
  other.mutable_delegation()->mutable_context()->set_dtype(v1::DTYPE_FP16);
  const Answer theirs = DelegateAs(*other_stub_, other);
  ASSERT_THAT(theirs.status, IsOk());
  EXPECT_NE(mine.id(), theirs.id());
  EXPECT_EQ(specialist_.runs(), 2);
}

TEST_F(SpecialistServiceTest, ARepeatAttachesToTheRunningDelegation) {
  absl::Notification go;
  specialist_.SetScript([&](auto&, auto&) {
    go.WaitForNotification();
    return ResultWithDriver("shared");
  });
  auto first = Begin(RequestWithKey("k"));
  auto second = Begin(RequestWithKey("k"));
  EXPECT_EQ(first->first.delegation_id(), second->first.delegation_id());
  go.Notify();
  for (auto* call : {first.get(), second.get()}) {
    const Answer answer = Read(*call->stream);
    ASSERT_THAT(answer.status, IsOk());
    EXPECT_EQ(answer.result().environment().driver_version(), "shared");
  }
  EXPECT_EQ(specialist_.runs(), 1);
}

TEST_F(SpecialistServiceTest, AClientThatGoesAwayLosesNothing) {
  absl::Notification go;
  specialist_.SetScript([&](auto&, DelegationContext& context) {
    go.WaitForNotification();
    return ResultWithDriver(context.stop.stop_requested() ? "stopped" : "whole");
  });
  {
    auto call = Begin(RequestWithKey("k"));
    call->context.TryCancel();
    EXPECT_THAT(Read(*call->stream).status, StatusIs(absl::StatusCode::kCancelled, _));
  }
  go.Notify();
  const Answer answer = Delegate(RequestWithKey("k"));
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_EQ(answer.result().environment().driver_version(), "whole");
  EXPECT_EQ(specialist_.runs(), 1);
}

TEST_F(SpecialistServiceTest, TheDeadlineOfTheCallStopsTheDelegation) {
  absl::Notification stopped;
  specialist_.SetScript([&](const v1::DelegationRequest& request, DelegationContext& context) {
    auto outcome = WaitForStop(request, context);
    stopped.Notify();
    return outcome;
  });
  EXPECT_THAT(Delegate(RequestWithKey("k"), absl::Milliseconds(100)).status,
              StatusIs(absl::StatusCode::kDeadlineExceeded, _));
  ASSERT_TRUE(stopped.WaitForNotificationWithTimeout(kLong));
  // A missed deadline is no result: with more time the same key runs again.
  specialist_.SetScript([](auto&, auto&) { return ResultWithDriver("in time"); });
  Answer again;
  do {
    again = Delegate(RequestWithKey("k"));
  } while (absl::IsDeadlineExceeded(again.status));
  ASSERT_THAT(again.status, IsOk());
  EXPECT_EQ(again.result().environment().driver_version(), "in time");
}

TEST_F(SpecialistServiceTest, ADelegationHasALongestTimeWithoutAnyDeadline) {
  ShutDown();
  options_.delegations.longest = absl::Milliseconds(50);
  StartUp();
  specialist_.SetScript(WaitForStop);
  const absl::Status status = Delegate(RequestWithKey("k")).status;
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, _));
  EXPECT_EQ(ErrorReason(status), "DELEGATION_DEADLINE");
}

TEST_F(SpecialistServiceTest, MoreThanRunAndWaitAreRefused) {
  absl::Notification go;
  specialist_.SetScript([&](auto&, auto&) {
    go.WaitForNotification();
    return v1::DelegationResult();
  });
  auto running = Begin(RequestWithKey("running"));
  auto waiting = Begin(RequestWithKey("waiting"));
  EXPECT_EQ(service_->running_delegations(), 2);
  const absl::Status third = Delegate(RequestWithKey("third")).status;
  EXPECT_THAT(third,
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1 delegations run")));
  EXPECT_EQ(ErrorReason(third), "QUEUE_FULL");
  // Attaching takes no place.
  auto attached = Begin(RequestWithKey("waiting"));
  go.Notify();
  EXPECT_THAT(Read(*running->stream).status, IsOk());
  EXPECT_THAT(Read(*waiting->stream).status, IsOk());
  EXPECT_THAT(Read(*attached->stream).status, IsOk());
  EXPECT_THAT(Delegate(RequestWithKey("third")).status, IsOk());
}

TEST_F(SpecialistServiceTest, AnErrorOfTheSpecialistArrivesWithItsReasonAndIsNoResult) {
  specialist_.SetScript([](auto&, auto&) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "GPU_BUSY", "GPU 3 is in use");
  });
  const absl::Status status = Delegate(RequestWithKey("k")).status;
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("GPU 3")));
  EXPECT_EQ(ErrorReason(status), "GPU_BUSY");
  specialist_.SetScript([](auto&, auto&) { return ResultWithDriver("now"); });
  Answer again;
  do {  // The record of the first may be closed a moment after its answer.
    again = Delegate(RequestWithKey("k"));
  } while (absl::IsFailedPrecondition(again.status));
  EXPECT_THAT(again.status, IsOk());
}

TEST_F(SpecialistServiceTest, AnExceptionEndsTheDelegationAndNotTheProcess) {
  specialist_.SetScript([](auto&, auto&) -> absl::StatusOr<v1::DelegationResult> {
    throw std::runtime_error("a library threw");
  });
  EXPECT_THAT(Delegate(RequestWithKey("k")).status,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("a library threw")));
}

TEST_F(SpecialistServiceTest, AResultTooLargeToSendIsAnError) {
  ShutDown();
  options_.delegations.max_result_bytes = 1000;
  StartUp();
  specialist_.SetScript([](auto&, auto&) { return ResultWithDriver(std::string(1001, 'x')); });
  const absl::Status status = Delegate(RequestWithKey("k")).status;
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("at most 1000")));
  EXPECT_EQ(ErrorReason(status), "RESULT_TOO_LARGE");
}

TEST_F(SpecialistServiceTest, AResultOfManyMebibytesArrives) {
  specialist_.SetScript([](auto&, auto&) { return ResultWithDriver(std::string(20 << 20, 'x')); });
  const Answer answer = Delegate(RequestWithKey("k"));
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_EQ(answer.result().environment().driver_version().size(), 20u << 20);
}

TEST_F(SpecialistServiceTest, ARequestThatSaysHowIsRefused) {
  v1::DelegateRequest request = RequestWithKey("k");
  request.mutable_delegation()->set_statement(
      "Run ncu --set full on the benchmark. Write the report to /tmp/out.ncu-rep.");
  const absl::Status status = Delegate(request).status;
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_EQ(ErrorReason(status), "DELEGATION_NOT_OUTCOME_ONLY");
  ASSERT_FALSE(FieldViolations(status).empty());
  EXPECT_EQ(FieldViolations(status)[0].field, "delegation.statement");
  EXPECT_EQ(specialist_.runs(), 0);
}

TEST_F(SpecialistServiceTest, ShuttingDownStopsWhatRunsAndKeepsNoResultOfIt) {
  specialist_.SetScript(WaitForStop);
  auto running = Begin(RequestWithKey("running"));
  auto waiting = Begin(RequestWithKey("waiting"));
  service_->Shutdown();
  for (auto* call : {running.get(), waiting.get()}) {
    EXPECT_THAT(Read(*call->stream).status, StatusIs(absl::StatusCode::kUnavailable, _));
  }
  EXPECT_THAT(Delegate(RequestWithKey("late")).status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("shutting down")));
  ShutDown();
  StartUp();
  specialist_.SetScript([](auto&, auto&) { return ResultWithDriver("next life"); });
  EXPECT_THAT(Delegate(RequestWithKey("running")).status, IsOk());
}

// --- CancelDelegation ------------------------------------------------------

TEST_F(SpecialistServiceTest, CancelsARunningDelegationOnce) {
  absl::Notification started;
  specialist_.SetScript([&](const v1::DelegationRequest& request, DelegationContext& context) {
    started.Notify();
    return WaitForStop(request, context);
  });
  auto call = Begin(RequestWithKey("k"));
  started.WaitForNotification();
  v1::CancelDelegationRequest by_id;
  by_id.set_delegation_id(call->first.delegation_id());
  EXPECT_THAT(CancelAs(*stub_, by_id),
              solward::testing::IsOkAndHolds(v1::CANCEL_OUTCOME_CANCELLED));
  const absl::Status status = Read(*call->stream).status;
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, _));
  EXPECT_EQ(ErrorReason(status), "DELEGATION_CANCELLED");
  EXPECT_THAT(CancelAs(*stub_, by_id),
              solward::testing::IsOkAndHolds(v1::CANCEL_OUTCOME_ALREADY_CANCELLED));
  // Cancelled stays cancelled, also after a restart.
  ShutDown();
  StartUp();
  EXPECT_THAT(Delegate(RequestWithKey("k")).status, StatusIs(absl::StatusCode::kCancelled, _));
  EXPECT_THAT(CancelKey("k"), solward::testing::IsOkAndHolds(v1::CANCEL_OUTCOME_ALREADY_CANCELLED));
  EXPECT_EQ(specialist_.runs(), 1);
}

TEST_F(SpecialistServiceTest, CancelsAWaitingDelegationBeforeItRuns) {
  absl::Notification go;
  specialist_.SetScript([&](auto&, auto&) {
    go.WaitForNotification();
    return v1::DelegationResult();
  });
  auto running = Begin(RequestWithKey("running"));
  auto waiting = Begin(RequestWithKey("waiting"));
  EXPECT_THAT(CancelKey("waiting"), solward::testing::IsOkAndHolds(v1::CANCEL_OUTCOME_CANCELLED));
  EXPECT_THAT(Read(*waiting->stream).status, StatusIs(absl::StatusCode::kCancelled, _));
  // Its place is free again.
  auto next = Begin(RequestWithKey("next"));
  go.Notify();
  EXPECT_THAT(Read(*running->stream).status, IsOk());
  EXPECT_THAT(Read(*next->stream).status, IsOk());
  EXPECT_EQ(specialist_.runs(), 2);
}

TEST_F(SpecialistServiceTest, AnEndedDelegationCannotBeCancelled) {
  ASSERT_THAT(Delegate(RequestWithKey("k")).status, IsOk());
  EXPECT_THAT(CancelKey("k"), solward::testing::IsOkAndHolds(v1::CANCEL_OUTCOME_ALREADY_ENDED));
  ShutDown();
  StartUp();
  EXPECT_THAT(CancelKey("k"), solward::testing::IsOkAndHolds(v1::CANCEL_OUTCOME_ALREADY_ENDED));
}

TEST_F(SpecialistServiceTest, CancellingNothingIsNotFound) {
  EXPECT_THAT(CancelKey("none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("'none'")));
  EXPECT_THAT(CancelAs(*stub_, {}), StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST_F(SpecialistServiceTest, OnlyItsCallerOrTheSpecialistsOwnerCancels) {
  specialist_.SetScript(WaitForStop);
  auto mine = Begin(RequestWithKey("mine"));
  v1::CancelDelegationRequest by_id;
  by_id.set_delegation_id(mine->first.delegation_id());
  EXPECT_THAT(CancelAs(*other_stub_, by_id), StatusIs(absl::StatusCode::kPermissionDenied, _));
  // By key a caller sees only delegations of its own.
  v1::CancelDelegationRequest by_key;
  by_key.set_key("mine");
  EXPECT_THAT(CancelAs(*other_stub_, by_key), StatusIs(absl::StatusCode::kNotFound, _));
  // The Unix caller here is the user who runs the specialist.
  auto theirs = BeginAs(*other_stub_, RequestWithKey("theirs"));
  by_id.set_delegation_id(theirs->first.delegation_id());
  EXPECT_THAT(CancelAs(*stub_, by_id),
              solward::testing::IsOkAndHolds(v1::CANCEL_OUTCOME_CANCELLED));
  EXPECT_THAT(Read(*theirs->stream).status, StatusIs(absl::StatusCode::kCancelled, _));
  EXPECT_THAT(CancelKey("mine"), IsOk());
  EXPECT_THAT(Read(*mine->stream).status, StatusIs(absl::StatusCode::kCancelled, _));
}

// --- PutCapture ------------------------------------------------------------

TEST_F(SpecialistServiceTest, TakesACaptureInChunks) {
  const std::string first(1 << 20, 'a'), second = "bc";
  ASSERT_OK_AND_ASSIGN(auto response,
                       Put({Header("x.json", first + second), Data(first), Data(second)}));
  EXPECT_FALSE(response.existed());
  EXPECT_EQ(response.artifact().size(), (1 << 20) + 2);
  EXPECT_EQ(response.artifact().label(), "x.json");
  EXPECT_THAT(workspace_->Find(response.artifact().id()), IsOk());
}

TEST_F(SpecialistServiceTest, ACaptureItHasAlreadyKeepsItsIdUnderTheCallersLabel) {
  ASSERT_OK_AND_ASSIGN(auto first, Put({Header("x.json", "abc"), Data("abc")}));
  ASSERT_OK_AND_ASSIGN(auto second, Put({Header("y.json", "abc"), Data("abc")}));
  EXPECT_TRUE(second.existed());
  EXPECT_EQ(second.artifact().id(), first.artifact().id());
  EXPECT_EQ(second.artifact().label(), "y.json");
  EXPECT_EQ(workspace_->List().size(), 1);
  // Knowing the digest is not having the bytes.
  EXPECT_THAT(Put({Header("z.json", "abc"), Data("abd")}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SHA-256")));
  EXPECT_THAT(Put({Header("z.json", "abc")}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 bytes came")));
}

TEST_F(SpecialistServiceTest, AnEmptyCaptureIsTaken) {
  EXPECT_THAT(Put({Header("empty.csv", "")}), IsOk());
}

TEST_F(SpecialistServiceTest, ACaptureThatIsNotWhatItsHeaderSaysIsRefused) {
  const auto refuses = [&](const std::vector<v1::PutCaptureRequest>& parts,
                           const std::string& what) {
    EXPECT_THAT(Put(parts), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  refuses({}, "before its header");
  refuses({Data("abc")}, "found data");
  refuses({Header("x", "abc"), Header("x", "abc")}, "second header");
  refuses({Header("x", "abc"), Data("ab")}, "2 bytes came, the header says 3");
  refuses({Header("x", "abc"), Data("abcd")}, "more bytes than");
  refuses({Header("x", "abc"), Data("abd")}, "SHA-256");
  const std::string large((1 << 20) + 1, 'a');
  refuses({Header("x", large), Data(large)}, "at most 1048576");
  refuses({Header("../x", "abc"), Data("abc")}, "header.label");
  refuses({Header("", "abc"), Data("abc")}, "header.label");
  v1::PutCaptureRequest upper = Header("x", "abc");
  upper.mutable_header()->set_sha256(std::string(64, 'A'));
  refuses({upper}, "header.sha256");
  EXPECT_TRUE(workspace_->List().empty());
}

TEST_F(SpecialistServiceTest, ACaptureAboveTheLimitIsRefusedAtItsHeader) {
  ShutDown();
  limits_.max_artifact_bytes = 2;
  StartUp();
  const auto answer = Put({Header("x", "abc"), Data("abc")});
  EXPECT_THAT(answer,
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_artifact_bytes = 2")));
  EXPECT_EQ(ErrorReason(answer.status()), "ARTIFACT_TOO_LARGE");
}

TEST_F(SpecialistServiceTest, MoreUploadsAtATimeThanAllowedAreRefused) {
  ShutDown();
  options_.max_uploads = 1;
  StartUp();
  {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PutCaptureResponse response;
    auto writer = stub_->PutCapture(&context, &response);
    ASSERT_TRUE(writer->Write(Header("x", "abc")));
    // The first is known to be in progress once the second is refused.
    absl::Status second;
    do {
      second = Put({Header("y", "abd"), Data("abd")}).status();
    } while (second.ok());
    EXPECT_EQ(ErrorReason(second), "TOO_MANY_UPLOADS");
    context.TryCancel();
    writer->Finish();
  }
  absl::Status after;
  do {  // The place comes back a moment after the client's end.
    after = Put({Header("y", "abc"), Data("abc")}).status();
  } while (absl::IsResourceExhausted(after));
  EXPECT_THAT(after, IsOk());
}

// --- ReadArtifact ----------------------------------------------------------

TEST_F(SpecialistServiceTest, ReadsAnArtifactInChunksOfAMebibyte) {
  const std::string chunk(1 << 20, 'a'), rest(1000, 'b');
  ASSERT_OK_AND_ASSIGN(
      auto put, Put({Header("x", chunk + chunk + rest), Data(chunk), Data(chunk), Data(rest)}));
  ASSERT_OK_AND_ASSIGN(auto responses, ReadArtifact(put.artifact().id(), 0, 0));
  ASSERT_EQ(responses.size(), 3);
  EXPECT_EQ(responses[0].artifact().sha256(), put.artifact().sha256());
  EXPECT_FALSE(responses[1].has_artifact());
  EXPECT_EQ(responses[0].data() + responses[1].data() + responses[2].data(), chunk + chunk + rest);
  EXPECT_LE(responses[0].data().size(), 1u << 20);
}

TEST_F(SpecialistServiceTest, ReadsARangeAndRefusesOneOutside) {
  ASSERT_OK_AND_ASSIGN(auto put, Put({Header("x", "0123456789"), Data("0123456789")}));
  const std::string id = put.artifact().id();
  const auto bytes = [&](uint64_t offset, uint64_t length) {
    const auto responses = ReadArtifact(id, offset, length);
    return responses.ok() ? responses->front().data() : responses.status().ToString();
  };
  EXPECT_EQ(bytes(3, 4), "3456");
  EXPECT_EQ(bytes(7, 0), "789");
  EXPECT_EQ(bytes(10, 0), "");
  for (const auto& [offset, length] :
       {std::pair<uint64_t, uint64_t>(11, 0), {0, 11}, {10, 1}, {UINT64_MAX, 2}, {2, UINT64_MAX}}) {
    EXPECT_THAT(ReadArtifact(id, offset, length),
                StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("has 10 bytes")));
  }
  EXPECT_THAT(ReadArtifact("../instance", 0, 0), StatusIs(absl::StatusCode::kNotFound, _));
}

// --- Recompute -------------------------------------------------------------

TEST_F(SpecialistServiceTest, RecomputesInOrder) {
  v1::RecomputeRequest request;
  for (int i = 0; i < 3; ++i) {
    request.add_metrics()->set_key(absl::StrCat("m", i));
    request.mutable_metrics(i)->set_value(i * 1.5);
  }
  grpc::ClientContext context;
  SetDeadline(context);
  v1::RecomputeResponse response;
  ASSERT_TRUE(stub_->Recompute(&context, request, &response).ok());
  ASSERT_EQ(response.metrics_size(), 3);
  EXPECT_EQ(response.metrics(2).key(), "m2");
  EXPECT_EQ(response.metrics(2).value(), 3.0);
}

TEST_F(SpecialistServiceTest, ARecomputationThatFailsIsAnError) {
  for (const char* id : {"lost", "thrown"}) {
    v1::RecomputeRequest request;
    request.add_metrics()->set_id(id);
    grpc::ClientContext context;
    SetDeadline(context);
    v1::RecomputeResponse response;
    EXPECT_EQ(stub_->Recompute(&context, request, &response).error_code(),
              grpc::StatusCode::INTERNAL);
  }
}

}  // namespace
}  // namespace solward::runtime
