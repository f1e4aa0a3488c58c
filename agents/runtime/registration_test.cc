#include "agents/runtime/registration.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/rpc_server.h"
#include "common/status_matchers.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::runtime {
namespace {

using solward::testing::IsOk;

// A test double of the coordinator's registry that writes down what it hears.
class RecordingRegistry final : public v1::RegistryService::CallbackService {
 public:
  grpc::ServerUnaryReactor* RegisterSpecialist(grpc::CallbackServerContext* context,
                                               const v1::RegisterSpecialistRequest* request,
                                               v1::RegisterSpecialistResponse* response) override {
    absl::MutexLock lock(&mutex_);
    registered_.push_back(*request);
    response->set_registration_id(absl::StrCat("registration-", registered_.size()));
    response->mutable_heartbeat_interval()->set_nanos(50'000'000);
    return Answer(context, refuse_ ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "not now")
                                   : grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* /*response*/) override {
    absl::MutexLock lock(&mutex_);
    beats_.push_back(*request);
    const bool forgotten = request->registration_id() == forgotten_;
    return Answer(context,
                  forgotten ? grpc::Status(grpc::StatusCode::NOT_FOUND, "who?") : grpc::Status::OK);
  }

  grpc::ServerUnaryReactor* LeaveRegistry(grpc::CallbackServerContext* context,
                                          const v1::LeaveRegistryRequest* request,
                                          v1::LeaveRegistryResponse* /*response*/) override {
    absl::MutexLock lock(&mutex_);
    left_.push_back(request->registration_id());
    return Answer(context, grpc::Status::OK);
  }

  void Forget(const std::string& id) {
    absl::MutexLock lock(&mutex_);
    forgotten_ = id;
  }
  void Refuse(bool refuse) {
    absl::MutexLock lock(&mutex_);
    refuse_ = refuse;
  }

  // Each waits until that many have come.
  std::vector<v1::RegisterSpecialistRequest> Registered(size_t count) {
    absl::MutexLock lock(&mutex_);
    wanted_ = count;
    EXPECT_TRUE(mutex_.AwaitWithTimeout(
        absl::Condition(
            +[](RecordingRegistry* r) { return r->registered_.size() >= r->wanted_; }, this),
        absl::Seconds(30)));
    return registered_;
  }
  std::vector<v1::HeartbeatRequest> Beats(size_t count) {
    absl::MutexLock lock(&mutex_);
    wanted_ = count;
    EXPECT_TRUE(mutex_.AwaitWithTimeout(
        absl::Condition(
            +[](RecordingRegistry* r) { return r->beats_.size() >= r->wanted_; }, this),
        absl::Seconds(30)));
    return beats_;
  }
  std::vector<std::string> left() {
    absl::MutexLock lock(&mutex_);
    return left_;
  }

 private:
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                          const grpc::Status& status) {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  absl::Mutex mutex_;
  size_t wanted_ = 0;
  bool refuse_ = false;
  std::string forgotten_;
  std::vector<v1::RegisterSpecialistRequest> registered_;
  std::vector<v1::HeartbeatRequest> beats_;
  std::vector<std::string> left_;
};

class RegistrationTest : public ::testing::Test {
 protected:
  RegistrationTest() {
    std::string pattern = ::testing::TempDir() + "/registrationXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~RegistrationTest() override { std::filesystem::remove_all(folder_); }

  void StartRegistry() {
    RpcServerOptions options;
    options.listen = {Target()};
    auto server = RpcServer::Start(options, {&registry_});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  std::unique_ptr<Registration> Start() {
    RegistrationOptions options;
    options.coordinator = Target();
    options.advertise = "unix:/where/i/am.sock";
    options.first_backoff = absl::Milliseconds(10);
    options.longest_backoff = absl::Milliseconds(100);
    return Registration::Start(
        options,
        [] {
          v1::SpecialistDescription description;
          description.set_name("perf-test-specialist");
          return description;
        },
        [] { return 3u; });
  }

  std::string Target() const { return "unix:" + folder_ + "/c.sock"; }

  std::string folder_;
  RecordingRegistry registry_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(RegistrationTest, RegistersBeatsAndLeaves) {
  StartRegistry();
  {
    auto registration = Start();
    const auto registered = registry_.Registered(1);
    EXPECT_EQ(registered[0].target(), "unix:/where/i/am.sock");
    EXPECT_EQ(registered[0].description().name(), "perf-test-specialist");
    const auto beats = registry_.Beats(3);
    EXPECT_EQ(beats[2].registration_id(), "registration-1");
    EXPECT_EQ(beats[2].running_delegations(), 3);
    EXPECT_TRUE(registration->registered());
    EXPECT_TRUE(registry_.left().empty());
  }
  EXPECT_THAT(registry_.left(), ::testing::ElementsAre("registration-1"));
  EXPECT_EQ(registry_.Registered(1).size(), 1);
}

TEST_F(RegistrationTest, RegistersAgainWhenTheCoordinatorForgotIt) {
  StartRegistry();
  auto registration = Start();
  registry_.Beats(1);
  registry_.Forget("registration-1");
  registry_.Registered(2);
  while (registry_.Beats(1).back().registration_id() != "registration-2") {
    absl::SleepFor(absl::Milliseconds(1));
  }
  registration.reset();
  EXPECT_THAT(registry_.left(), ::testing::ElementsAre("registration-2"));
}

TEST_F(RegistrationTest, TriesOnUntilTheCoordinatorIsThere) {
  auto registration = Start();
  EXPECT_FALSE(registration->registered());
  StartRegistry();
  registry_.Registered(1);
}

TEST_F(RegistrationTest, TriesOnWhenItIsRefused) {
  StartRegistry();
  registry_.Refuse(true);
  auto registration = Start();
  registry_.Registered(3);
  EXPECT_FALSE(registration->registered());
  registry_.Refuse(false);
  registry_.Beats(1);
}

TEST_F(RegistrationTest, RegistersAgainWithACoordinatorThatCameBack) {
  StartRegistry();
  auto registration = Start();
  registry_.Beats(1);
  server_.reset();
  while (registration->registered()) absl::SleepFor(absl::Milliseconds(1));
  StartRegistry();
  registry_.Registered(2);
}

TEST_F(RegistrationTest, EndsPromptlyWithoutACoordinator) {
  // Nothing to leave, and nothing to wait for.
  auto registration = Start();
  registration.reset();
  EXPECT_TRUE(registry_.left().empty());
}

}  // namespace
}  // namespace solward::runtime
