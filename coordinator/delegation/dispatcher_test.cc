#include <filesystem>
#include <thread>

#include "common/status_matchers.h"
#include "coordinator/delegation/grpc_dispatcher.h"
#include "coordinator/delegation/test_specialist.h"

namespace solward::delegation {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GrpcDispatcherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "dispatch-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.wait_for_specialist = absl::ZeroDuration();
    options_.first_backoff = absl::Milliseconds(1);
    ASSERT_THAT(specialist_.Serve(folder_), IsOk());
  }
  void TearDown() override {
    specialist_.StopServing();
    std::filesystem::remove_all(folder_);
  }
  void Register() {
    ASSERT_THAT(registry_.Register("uid:1000", specialist_.description(), specialist_.target()),
                IsOk());
  }
  static v1::PlannedDelegation Planned(const std::string& instance = "") {
    v1::PlannedDelegation planned;
    planned.set_specialist(std::string(kProfilingSpecialist));
    planned.set_wave(1);
    planned.mutable_request()->set_key("the key");
    auto* capture =
        planned.mutable_request()->mutable_workload()->mutable_captures()->add_captures();
    capture->set_id("art-1");
    capture->set_specialist_instance(instance);
    return planned;
  }
  v1::DelegationOutcome Dispatch(const v1::PlannedDelegation& planned, std::stop_token stop = {}) {
    GrpcDispatcher dispatcher(registry_, options_);
    return dispatcher.Dispatch(
        planned, [this](const v1::DelegationProgressed& p) { progress_.push_back(p); }, stop);
  }

  std::string folder_;
  TestSpecialist specialist_{std::string(kProfilingSpecialist), "one"};
  Registry registry_{RegistryOptions{}};
  DispatcherOptions options_;
  std::vector<v1::DelegationProgressed> progress_;
};

TEST_F(GrpcDispatcherTest, TheResultAndItsWayAreInTheOutcome) {
  Register();
  specialist_.AnswerWith([](const v1::DelegationRequest& request) {
    v1::DelegationResult result;
    result.mutable_environment()->set_host_name("host of " + request.key());
    result.add_artifacts()->set_id("art-2");
    return result;
  });
  const v1::DelegationOutcome outcome = Dispatch(Planned("one"));
  EXPECT_EQ(outcome.result().environment().host_name(), "host of the key");
  EXPECT_EQ(outcome.result().artifacts(0).specialist_instance(), "one");
  EXPECT_EQ(outcome.specialist_instance(), "one");
  EXPECT_EQ(outcome.delegation_id(), "delegation-the key");
  EXPECT_EQ(outcome.planned().request().key(), "the key");
  ASSERT_EQ(progress_.size(), 1u);
  EXPECT_EQ(progress_[0].specialist_instance(), "one");
  EXPECT_EQ(progress_[0].progress().phase(), v1::DELEGATION_PHASE_READING);
}

TEST_F(GrpcDispatcherTest, NoSpecialistIsAnUnavailableOutcome) {
  const v1::DelegationOutcome outcome = Dispatch(Planned());
  EXPECT_EQ(outcome.error().code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_EQ(outcome.error().reason(), "SPECIALIST_UNAVAILABLE");
  EXPECT_THAT(outcome.error().message(), HasSubstr(std::string(kProfilingSpecialist)));
}

TEST_F(GrpcDispatcherTest, TheSpecialistThatKeepsTheCaptureIsAskedAndNoOther) {
  Register();
  const v1::DelegationOutcome outcome = Dispatch(Planned("another"));
  EXPECT_EQ(outcome.error().reason(), "SPECIALIST_UNAVAILABLE");
  EXPECT_TRUE(specialist_.requests().empty());
}

TEST_F(GrpcDispatcherTest, ASpecialistThatWorksFromNumbersNeedNotKeepTheCaptures) {
  TestSpecialist graph(std::string(kCudaGraphSpecialist), "two");
  ASSERT_THAT(graph.Serve(folder_), IsOk());
  ASSERT_THAT(registry_.Register("uid:1000", graph.description(), graph.target()), IsOk());
  v1::PlannedDelegation planned = Planned("one");
  planned.set_specialist(std::string(kCudaGraphSpecialist));
  const v1::DelegationOutcome outcome = Dispatch(planned);
  EXPECT_TRUE(outcome.has_result());
  EXPECT_EQ(outcome.specialist_instance(), "two");
}

TEST_F(GrpcDispatcherTest, CapturesWithDifferentSpecialistsAreRefused) {
  v1::PlannedDelegation planned = Planned("one");
  auto* captures = planned.mutable_request()->mutable_workload()->mutable_captures();
  captures->add_captures()->set_specialist_instance("two");
  EXPECT_THAT(InstanceOfCaptures(planned.request()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("two")));
  EXPECT_EQ(Dispatch(planned).error().reason(), "CAPTURES_APART");
}

TEST_F(GrpcDispatcherTest, AFirstWaveWaitsForItsSpecialistASecondDoesNot) {
  options_.wait_for_specialist = absl::InfiniteDuration();
  v1::PlannedDelegation second = Planned();
  second.set_wave(2);
  EXPECT_EQ(Dispatch(second).error().reason(), "SPECIALIST_UNAVAILABLE");
  v1::DelegationOutcome outcome;
  {
    std::jthread waiting([&] { outcome = Dispatch(Planned()); });
    Register();
  }
  EXPECT_TRUE(outcome.has_result());
}

TEST_F(GrpcDispatcherTest, UnavailableBeforeAnyEventIsTriedAgain) {
  Register();
  specialist_.FailNext(2, absl::UnavailableError("starting"));
  EXPECT_TRUE(Dispatch(Planned()).has_result());
  EXPECT_EQ(specialist_.requests().size(), 3u);
}

TEST_F(GrpcDispatcherTest, ThreeTimesAtMost) {
  Register();
  specialist_.FailNext(10, absl::UnavailableError("starting"));
  EXPECT_EQ(Dispatch(Planned()).error().message(), "starting");
  EXPECT_EQ(specialist_.requests().size(), 3u);
}

TEST_F(GrpcDispatcherTest, OtherErrorsAreNotTriedAgainAndKeepTheirReason) {
  Register();
  specialist_.FailNext(1, MakeError(absl::StatusCode::kUnimplemented, "NOT_BUILT",
                                    "this specialist cannot do that yet"));
  const v1::DelegationOutcome outcome = Dispatch(Planned());
  EXPECT_EQ(outcome.error().code(), static_cast<int>(absl::StatusCode::kUnimplemented));
  EXPECT_EQ(outcome.error().reason(), "NOT_BUILT");
  EXPECT_EQ(outcome.error().message(), "this specialist cannot do that yet");
  EXPECT_EQ(specialist_.requests().size(), 1u);
}

TEST_F(GrpcDispatcherTest, UnavailableAfterAnEventIsNotTriedAgain) {
  Register();
  specialist_.AnswerWith([](const v1::DelegationRequest&) -> absl::StatusOr<v1::DelegationResult> {
    return absl::UnavailableError("lost");
  });
  EXPECT_EQ(Dispatch(Planned()).error().message(), "lost");
  EXPECT_EQ(specialist_.requests().size(), 1u);
}

TEST_F(GrpcDispatcherTest, ATimeBudgetIsTheDeadline) {
  Register();
  specialist_.Hold();
  options_.deadline_margin = absl::ZeroDuration();
  v1::PlannedDelegation planned = Planned();
  planned.mutable_request()->mutable_constraints()->mutable_time_budget()->set_nanos(200'000'000);
  EXPECT_EQ(Dispatch(planned).error().code(),
            static_cast<int>(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(GrpcDispatcherTest, AStopEndsTheCallAndCancelsAtTheSpecialist) {
  Register();
  specialist_.Hold();
  std::stop_source stop;
  v1::DelegationOutcome outcome;
  {
    std::jthread dispatching([&] { outcome = Dispatch(Planned(), stop.get_token()); });
    ASSERT_TRUE(specialist_.WaitForRequests(1));
    stop.request_stop();
  }
  EXPECT_EQ(outcome.error().code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_THAT(specialist_.cancelled_keys(), ElementsAre("the key"));
}

TEST_F(GrpcDispatcherTest, ADetachedStopLeavesTheDelegationRunning) {
  Register();
  specialist_.Hold();
  std::stop_source stop;
  GrpcDispatcher dispatcher(registry_, options_);
  v1::DelegationOutcome outcome;
  {
    std::jthread dispatching([&] {
      outcome = dispatcher.Dispatch(
          Planned(), [](const auto&) {}, stop.get_token());
    });
    ASSERT_TRUE(specialist_.WaitForRequests(1));
    dispatcher.Detach();
    stop.request_stop();
  }
  EXPECT_EQ(outcome.error().code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_TRUE(specialist_.cancelled_keys().empty());
}

}  // namespace
}  // namespace solward::delegation
