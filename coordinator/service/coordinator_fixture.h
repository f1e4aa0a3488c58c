// A whole coordinator in the test's process, on real sockets, with a test
// specialist registered at it, and clients to call it with.
#ifndef SOLWARD_COORDINATOR_SERVICE_COORDINATOR_FIXTURE_H_
#define SOLWARD_COORDINATOR_SERVICE_COORDINATOR_FIXTURE_H_

#include <grpc/grpc.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/rpc_server.h"
#include "common/sha256.h"
#include "common/status_matchers.h"
#include "coordinator/delegation/test_specialist.h"
#include "coordinator/service/coordinator.h"
#include "coordinator/workflow/evidence_fixture.h"
#include "solward/v1/analysis.grpc.pb.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::service {

class CoordinatorFixture : public ::testing::Test {
 protected:
  using Stub = v1::AnalysisService::Stub;

  // Held until the process ends: gRPC's last shutdown may wait ten seconds for a
  // poller that has nothing left to poll.
  static void SetUpTestSuite() { grpc_init(); }

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "coord-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    config_.server.listen = {"unix:" + folder_ + "/c.sock", "127.0.0.1:0"};
    config_.state_dir = folder_ + "/state";
    config_.dispatcher.wait_for_specialist = absl::ZeroDuration();
    config_.dispatcher.first_backoff = absl::Milliseconds(1);
    ASSERT_TRUE(profiler_.Serve(folder_).ok());
    profiler_.AnswerWith([](const v1::DelegationRequest&) { return LaunchBoundResult(); });
    Start();
  }
  void TearDown() override {
    profiler_.Release();
    coordinator_.reset();
    profiler_.StopServing();
    std::filesystem::remove_all(folder_);
  }

  void Start() {
    auto started = Coordinator::Start(config_);
    ASSERT_TRUE(started.ok()) << started.status();
    coordinator_ = *std::move(started);
    // Root or this user on the Unix socket, who see everything; "loopback", who does not.
    user_ = v1::AnalysisService::NewStub(DialTarget(coordinator_->targets()[0]));
    other_ = v1::AnalysisService::NewStub(DialTarget(coordinator_->targets()[1]));
  }
  void Restart() {
    coordinator_.reset();
    Start();
  }
  void Register(delegation::TestSpecialist& specialist) {
    const auto stub = v1::RegistryService::NewStub(DialTarget(coordinator_->targets()[0]));
    grpc::ClientContext context;
    v1::RegisterSpecialistRequest request;
    *request.mutable_description() = specialist.description();
    request.set_target(specialist.target());
    v1::RegisterSpecialistResponse response;
    const grpc::Status status = stub->RegisterSpecialist(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  void RegisterProfiler() { Register(profiler_); }

  // Calls a method of a stub: Call(*user_, &Stub::GetReport, request).
  template <typename Request, typename Response>
  static absl::StatusOr<Response> Call(Stub& stub,
                                       grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                                       const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }

  // A question about one recorded timeline.
  static v1::AnalysisRequest Question() {
    v1::AnalysisRequest request;
    auto* capture = request.mutable_workload()->mutable_captures()->add_captures();
    capture->set_id("art-launch");
    capture->set_label("launch.nsys.sqlite");
    capture->set_kind(v1::CAPTURE_KIND_NSYS_SQLITE);
    capture->set_specialist_instance("one");
    request.add_desired_metrics()->set_id("kernel_count");
    return request;
  }
  // What a specialist reads in the launch-bound capture of an H200.
  static v1::DelegationResult LaunchBoundResult() {
    namespace wt = workflow::testing;
    wt::ResultFixture fixture;
    const wt::SharesRow row = wt::ReadShares("h200/launch.nsys.sqlite.gz");
    const std::string artifact = fixture.AddTimeline(
        "nsys", row, {.kernels = 2045, .launch_calls = 2045, .synchronizations = 0});
    fixture.AddTimelineKernels(artifact, "nsys", 0, -1,
                               {{"add_kernel", 4, 1000}, {"mul_kernel", 6, 1045}, {"tail", 1, 10}});
    fixture.AddH200(artifact);
    auto* kept = fixture.result().add_artifacts();
    kept->set_id(artifact);
    kept->set_label("launch.nsys.sqlite");
    kept->set_specialist_instance("one");
    return fixture.Finish();
  }

  absl::StatusOr<v1::SubmitAnalysisResponse> Submit(const v1::AnalysisRequest& question,
                                                    const std::string& key = "",
                                                    Stub* stub = nullptr) {
    v1::SubmitAnalysisRequest request;
    request.set_key(key);
    *request.mutable_request() = question;
    return Call(stub != nullptr ? *stub : *user_, &Stub::SubmitAnalysis, request);
  }
  // Events after `after` until the stream ends or `count` have come (0: all).
  std::vector<v1::AnalysisEvent> Watch(const std::string& id, uint64_t after = 0,
                                       size_t count = 0) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::WatchAnalysisRequest request;
    request.set_analysis_id(id);
    request.set_after_sequence(after);
    const auto stream = user_->WatchAnalysis(&context, request);
    std::vector<v1::AnalysisEvent> events;
    v1::WatchAnalysisResponse response;
    while (stream->Read(&response)) {
      events.push_back(response.event());
      if (count != 0 && events.size() == count) {
        context.TryCancel();
        break;
      }
    }
    const grpc::Status ended = stream->Finish();
    if (count == 0) {
      EXPECT_TRUE(ended.ok()) << ended.error_message();
    }
    return events;
  }
  // Watches until the analysis is in `state`; false after 30 s.
  bool WaitFor(const std::string& id, v1::AnalysisState state) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::WatchAnalysisRequest request;
    request.set_analysis_id(id);
    const auto stream = user_->WatchAnalysis(&context, request);
    v1::WatchAnalysisResponse response;
    bool reached = false;
    while (!reached && stream->Read(&response)) reached = response.event().state() == state;
    context.TryCancel();
    stream->Finish();
    return reached;
  }
  // Submits and waits for the end. Returns the analysis.
  v1::Analysis Finished(const v1::AnalysisRequest& question) {
    auto submitted = Submit(question);
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    if (!submitted.ok()) return {};
    const std::string id = submitted->analysis().id();
    Watch(id);
    return Get(id);
  }
  v1::Analysis Get(const std::string& id) {
    v1::GetAnalysisRequest request;
    request.set_analysis_id(id);
    auto got = Call(*user_, &Stub::GetAnalysis, request);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() ? got->analysis() : v1::Analysis();
  }
  absl::StatusOr<v1::GetReportResponse> Report(
      const std::string& id, v1::ReportFormat format = v1::REPORT_FORMAT_MARKDOWN,
      v1::ReportLanguage language = v1::REPORT_LANGUAGE_ENGLISH) {
    v1::GetReportRequest request;
    request.set_analysis_id(id);
    request.set_format(format);
    request.set_language(language);
    return Call(*user_, &Stub::GetReport, request);
  }
  absl::StatusOr<v1::CancelAnalysisResponse> Cancel(const std::string& id) {
    v1::CancelAnalysisRequest request;
    request.set_analysis_id(id);
    return Call(*user_, &Stub::CancelAnalysis, request);
  }

  std::string folder_;
  CoordinatorConfig config_;
  delegation::TestSpecialist profiler_{std::string(delegation::kProfilingSpecialist), "one"};
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Stub> user_, other_;
};

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_COORDINATOR_FIXTURE_H_
