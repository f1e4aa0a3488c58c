#include "agents/runtime/specialist_service.h"

#include "agents/runtime/specialist_service_fixture.h"

namespace solward::runtime {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;

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
