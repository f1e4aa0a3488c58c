// What survives the end of the coordinator's process.
#include <unistd.h>

#include <fstream>

#include "coordinator/service/coordinator_fixture.h"

namespace solward::service {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::StatusIs;
using ::testing::HasSubstr;

using RestartTest = CoordinatorFixture;

TEST_F(RestartTest, AFinishedReportIsServedByteForByte) {
  RegisterProfiler();
  const v1::Analysis before = Finished(Question());
  ASSERT_EQ(before.state(), v1::ANALYSIS_STATE_SUCCEEDED);
  const auto events = Watch(before.id());
  const std::string english = Report(before.id())->text();
  const std::string french =
      Report(before.id(), v1::REPORT_FORMAT_MARKDOWN, v1::REPORT_LANGUAGE_FRENCH)->text();
  const std::string json = Report(before.id(), v1::REPORT_FORMAT_JSON)->text();
  Restart();
  EXPECT_EQ(Report(before.id())->text(), english);
  EXPECT_EQ(Report(before.id(), v1::REPORT_FORMAT_MARKDOWN, v1::REPORT_LANGUAGE_FRENCH)->text(),
            french);
  EXPECT_EQ(Report(before.id(), v1::REPORT_FORMAT_JSON)->text(), json);
  EXPECT_EQ(Watch(before.id()).size(), events.size());
}

TEST_F(RestartTest, JsonOfOneReportIsAlwaysTheSameText) {
  RegisterProfiler();
  const std::string id = Finished(Question()).id();
  const std::string json = Report(id, v1::REPORT_FORMAT_JSON)->text();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Report(id, v1::REPORT_FORMAT_JSON)->text(), json);
}

TEST_F(RestartTest, AnInterruptedAnalysisIsTakenUpAgainWithTheSameDelegation) {
  RegisterProfiler();
  profiler_.Hold();
  const auto submitted = Submit(Question());
  ASSERT_THAT(submitted, IsOk());
  const std::string id = submitted->analysis().id();
  ASSERT_TRUE(profiler_.WaitForRequests(1));
  coordinator_.reset();
  // The delegation was left running for the coordinator to come back to.
  EXPECT_TRUE(profiler_.cancelled_keys().empty());
  profiler_.Release();
  config_.dispatcher.wait_for_specialist = absl::Seconds(20);
  Start();
  RegisterProfiler();
  EXPECT_EQ(Watch(id).back().state(), v1::ANALYSIS_STATE_SUCCEEDED);
  const auto requests = profiler_.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].key(), requests[1].key());
  EXPECT_EQ(requests[0].SerializeAsString(), requests[1].SerializeAsString());
}

TEST_F(RestartTest, QuestionsStillWaitAfterARestart) {
  RegisterProfiler();
  v1::AnalysisRequest question = Question();
  auto* capture = question.mutable_workload()->mutable_captures()->mutable_captures(0);
  capture->set_label("bmm.ncu.raw.csv");
  capture->set_kind(v1::CAPTURE_KIND_NCU_CSV_RAW);
  question.mutable_desired_metrics(0)->set_id("mfu");
  question.mutable_context()->set_dtype(v1::DTYPE_FP16);
  const auto submitted = Submit(question, "k");
  ASSERT_THAT(submitted, IsOk());
  const std::string id = submitted->analysis().id();
  ASSERT_TRUE(WaitFor(id, v1::ANALYSIS_STATE_INPUT_REQUIRED));
  Restart();
  EXPECT_EQ(Get(id).state(), v1::ANALYSIS_STATE_INPUT_REQUIRED);
  EXPECT_EQ(Get(id).questions_size(), 1);
  EXPECT_TRUE(Submit(question, "k")->existed());
}

TEST_F(RestartTest, TwoCoordinatorsDoNotShareAStateFolder) {
  CoordinatorConfig second = config_;
  second.server.listen = {"unix:" + folder_ + "/second.sock"};
  const auto refused = Coordinator::Start(second);
  EXPECT_THAT(refused.status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another coordinator")));
  EXPECT_EQ(ErrorReason(refused.status()), "STATE_IN_USE");
}

TEST_F(RestartTest, ADamagedStoreIsSaidAtTheStart) {
  coordinator_.reset();
  for (const char* file : {"coordinator.db-wal", "coordinator.db-shm"}) {
    std::filesystem::remove(config_.state_dir + "/" + file);
  }
  std::ofstream(config_.state_dir + "/coordinator.db", std::ios::trunc) << std::string(9000, 'x');
  EXPECT_THAT(Coordinator::Start(config_).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("coordinator.db")));
}

TEST_F(RestartTest, ASocketFolderOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  coordinator_.reset();
  const std::string foreign = folder_ + "/foreign";
  ASSERT_TRUE(std::filesystem::create_directory(foreign));
  ASSERT_EQ(chown(foreign.c_str(), 12345, 12345), 0);
  config_.server.listen = {"unix:" + foreign + "/c.sock"};
  EXPECT_EQ(ErrorReason(Coordinator::Start(config_).status()), "SOCKET_FOLDER_FOREIGN");
}

TEST_F(RestartTest, AnAddressBeyondThisMachineNeedsTls) {
  coordinator_.reset();
  config_.server.listen = {"0.0.0.0:0"};
  const auto refused = Coordinator::Start(config_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorReason(refused.status()), "LISTEN_NEEDS_TLS");
}

}  // namespace
}  // namespace solward::service
