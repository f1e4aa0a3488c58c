#include "coordinator/delegation/registry.h"

#include <filesystem>
#include <thread>

#include "common/status_matchers.h"
#include "coordinator/delegation/test_specialist.h"

namespace solward::delegation {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "registry-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    RegistryOptions options;
    options.now = [this] { return now_; };
    options.describe_deadline = absl::Seconds(5);
    registry_ = std::make_unique<Registry>(options);
  }
  void TearDown() override {
    registry_.reset();
    std::filesystem::remove_all(folder_);
  }
  absl::StatusOr<Registration> Register(TestSpecialist& specialist,
                                        const std::string& caller = "uid:1000") {
    return registry_->Register(caller, specialist.description(), specialist.target());
  }

  std::string folder_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::unique_ptr<Registry> registry_;
};

TEST_F(RegistryTest, ARegisteredSpecialistIsFoundByNameAndInstance) {
  TestSpecialist one(std::string(kProfilingSpecialist), "one"), two("another", "two");
  ASSERT_THAT(one.Serve(folder_), IsOk());
  ASSERT_THAT(two.Serve(folder_), IsOk());
  ASSERT_OK_AND_ASSIGN(const Registration registration, Register(one));
  ASSERT_THAT(Register(two), IsOk());
  EXPECT_EQ(registration.heartbeat_interval, absl::Seconds(5));
  EXPECT_EQ(registry_->Find(kProfilingSpecialist, "")->target, one.target());
  EXPECT_EQ(registry_->Find("", "two")->description.name(), "another");
  EXPECT_THAT(registry_->Find(kProfilingSpecialist, "two"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("two")));
  const auto listed = registry_->List();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].description().name(), "another");
  EXPECT_TRUE(listed[0].healthy());
}

TEST_F(RegistryTest, WhatIsMissingIsNamedWithWhatIsThere) {
  TestSpecialist one("another", "one");
  ASSERT_THAT(one.Serve(folder_), IsOk());
  const auto none = registry_->Find(kCudaGraphSpecialist, "");
  EXPECT_THAT(none,
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(std::string(kCudaGraphSpecialist)), HasSubstr("none"))));
  EXPECT_EQ(ErrorReason(none.status()), "SPECIALIST_UNAVAILABLE");
  ASSERT_THAT(Register(one), IsOk());
  EXPECT_THAT(registry_->Find(kCudaGraphSpecialist, ""),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another one")));
}

TEST_F(RegistryTest, WithoutHeartbeatsItIsUnhealthyThenForgotten) {
  TestSpecialist one("name", "one"), two("name", "two");
  ASSERT_THAT(one.Serve(folder_), IsOk());
  ASSERT_THAT(two.Serve(folder_), IsOk());
  ASSERT_OK_AND_ASSIGN(const Registration registration, Register(one));
  now_ += absl::Seconds(16);
  EXPECT_THAT(registry_->Find("name", ""),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no heartbeat")));
  EXPECT_FALSE(registry_->List()[0].healthy());
  EXPECT_EQ(registry_->List()[0].since_heartbeat().seconds(), 16);
  ASSERT_THAT(registry_->Heartbeat("uid:1000", registration.id, 0), IsOk());
  EXPECT_THAT(registry_->Find("name", ""), IsOk());
  now_ += absl::Hours(1);
  ASSERT_THAT(Register(two), IsOk());
  EXPECT_EQ(registry_->List().size(), 1u);
  EXPECT_THAT(registry_->Heartbeat("uid:1000", registration.id, 0),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("register again")));
}

TEST_F(RegistryTest, OneThatLeftIsGone) {
  TestSpecialist one("name", "one");
  ASSERT_THAT(one.Serve(folder_), IsOk());
  ASSERT_OK_AND_ASSIGN(const Registration registration, Register(one));
  EXPECT_THAT(registry_->Leave("uid:1001", registration.id),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(registration.id)));
  ASSERT_THAT(registry_->Leave("uid:1000", registration.id), IsOk());
  EXPECT_TRUE(registry_->List().empty());
}

TEST_F(RegistryTest, RegisteringAgainReplacesTheEntryOfTheSameCaller) {
  TestSpecialist one("name", "one");
  ASSERT_THAT(one.Serve(folder_), IsOk());
  ASSERT_OK_AND_ASSIGN(const Registration first, Register(one));
  ASSERT_OK_AND_ASSIGN(const Registration second, Register(one));
  EXPECT_NE(first.id, second.id);
  EXPECT_EQ(registry_->List().size(), 1u);
  EXPECT_THAT(Register(one, "uid:1001"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("one")));
  now_ += absl::Minutes(1);
  EXPECT_THAT(Register(one, "uid:1001"), IsOk());
}

TEST_F(RegistryTest, ATargetThatDoesNotAnswerOrIsAnotherIsRefused) {
  TestSpecialist one("name", "one"), two("name", "two");
  ASSERT_THAT(one.Serve(folder_), IsOk());
  EXPECT_THAT(registry_->Register("uid:1000", one.description(), "unix:" + folder_ + "/none.sock"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("none.sock")));
  const auto other = registry_->Register("uid:1000", two.description(), one.target());
  EXPECT_THAT(other, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("found name one")));
  const auto empty = registry_->Register("uid:1000", {}, "");
  EXPECT_EQ(FieldViolations(empty.status()).size(), 3u);
  EXPECT_TRUE(registry_->List().empty());
}

TEST_F(RegistryTest, TheLeastBusyIsAsked) {
  TestSpecialist one("name", "one"), two("name", "two");
  ASSERT_THAT(one.Serve(folder_), IsOk());
  ASSERT_THAT(two.Serve(folder_), IsOk());
  ASSERT_OK_AND_ASSIGN(const Registration first, Register(one));
  ASSERT_THAT(Register(two), IsOk());
  ASSERT_THAT(registry_->Heartbeat("uid:1000", first.id, 2), IsOk());
  EXPECT_EQ(registry_->Find("name", "")->description.instance_id(), "two");
  {
    std::vector<std::unique_ptr<Registry::Running>> running;
    for (int i = 0; i < 3; ++i) running.push_back(registry_->CountRunning("two"));
    EXPECT_EQ(registry_->Find("name", "")->description.instance_id(), "one");
  }
  EXPECT_EQ(registry_->Find("name", "")->description.instance_id(), "two");
}

TEST_F(RegistryTest, WaitingEndsWhenOneRegistersOrTheWaitIsStopped) {
  TestSpecialist one("name", "one");
  ASSERT_THAT(one.Serve(folder_), IsOk());
  std::stop_source stop;
  absl::StatusOr<Endpoint> found = absl::UnknownError("not yet");
  {
    std::jthread waiting(
        [&] { found = registry_->WaitFor("name", "", absl::InfiniteFuture(), stop.get_token()); });
    ASSERT_THAT(Register(one), IsOk());
  }
  ASSERT_THAT(found, IsOk());
  {
    std::jthread waiting(
        [&] { found = registry_->WaitFor("other", "", absl::InfiniteFuture(), stop.get_token()); });
    stop.request_stop();
  }
  EXPECT_THAT(found, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("other")));
  EXPECT_THAT(registry_->WaitFor("other", "", absl::InfinitePast(), {}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("other")));
}

}  // namespace
}  // namespace solward::delegation
