#include "agents/profiling/profiling_specialist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents/profiling/result_fixture.h"
#include "agents/profiling/workspace_fixture.h"
#include "common/status_matchers.h"

namespace solward::profiling {
namespace {

using ::solward::testing::MetricOf;
using ::solward::testing::MetricsOf;
using ::solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class ProfilingSpecialistTest : public solward::testing::WorkspaceTest {
 protected:
  static void Want(absl::string_view id, v1::DelegationRequest* request) {
    request->add_desired_metrics()->set_id(std::string(id));
  }
  static const v1::UnmeasuredMetric* Unmeasured(const v1::DelegationResult& result,
                                                absl::string_view id) {
    for (const v1::UnmeasuredMetric& unmeasured : result.unmeasured()) {
      if (unmeasured.id() == id) return &unmeasured;
    }
    return nullptr;
  }
};

TEST_F(ProfilingSpecialistTest, DescribesWhatItCanMeasure) {
  const v1::SpecialistDescription description = specialist_->Describe();
  EXPECT_EQ(description.name(), "perf-profiling-specialist");
  EXPECT_THAT(description.workload_kinds(), Contains("captures"));
  EXPECT_THAT(description.metric_ids(), Contains("compute_throughput"));
  EXPECT_THAT(description.metric_ids(), Contains("gpu_busy_share"));
  EXPECT_THAT(description.metric_ids(), Contains("gpu_utilization"));
  EXPECT_THAT(description.metric_ids(), Not(Contains("mfu")));
}

TEST_F(ProfilingSpecialistTest, CapturesOfSeveralKindsCountTogether) {
  const std::vector<v1::ArtifactReference> captures = {PutData("h200/axpy.ncu.raw.csv"),
                                                       PutData("h200/axpy.nsys.sqlite.gz"),
                                                       PutData("h200/nvidia-smi-query.csv")};
  ASSERT_OK_AND_ASSIGN(const v1::DelegationResult result, Run(Request(captures)));
  ASSERT_THAT(result.captures(), SizeIs(3));
  EXPECT_EQ(result.captures(0).kind(), v1::CAPTURE_KIND_NCU_CSV_RAW);
  EXPECT_EQ(result.captures(1).kind(), v1::CAPTURE_KIND_NSYS_SQLITE);
  EXPECT_EQ(result.captures(1).tool(), "nsys");
  EXPECT_FALSE(result.captures(1).tool_version().empty());
  EXPECT_EQ(result.captures(2).label(), "nvidia-smi-query.csv");
  for (const v1::CaptureOutcome& outcome : result.captures()) EXPECT_EQ(outcome.code(), 0);
  EXPECT_THAT(result.artifacts(), SizeIs(3));
  MetricOf(result, "compute_throughput", v1::SCOPE_KIND_KERNEL, "axpy(");
  MetricOf(result, "gpu_busy_share", v1::SCOPE_KIND_RUN);
  MetricOf(result, "power", v1::SCOPE_KIND_DEVICE);
  // The timeline knows all launches; the profiled ones are some of them.
  for (const v1::Metric& metric : MetricsOf(result, "kernel_launches", v1::SCOPE_KIND_KERNEL)) {
    EXPECT_EQ(metric.provenance().measured().tool(), "nsys");
  }
  EXPECT_THAT(progress_, SizeIs(3));
  EXPECT_THAT(progress_[0].second, HasSubstr("axpy.nsys.sqlite.gz (nsys SQLite export)"));
}

TEST_F(ProfilingSpecialistTest, OneBadCaptureIsAnOutcomeTheOthersCount) {
  const std::string gz = solward::testing::FileBytes(
      solward::testing::SourcePath("tests/data/h200/launch.torch.json.gz"));
  const std::vector<v1::ArtifactReference> captures = {
      Put(gz.substr(0, gz.size() / 2), "half.json.gz"), Put("<html>sign in</html>", "page.html"),
      PutData("h200/bmm.ncu-rep"), PutData("h200/bmm.ncu.raw.csv"),
      Put("{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"X\"", "cut.json")};
  ASSERT_OK_AND_ASSIGN(const v1::DelegationResult result, Run(Request(captures)));
  ASSERT_THAT(result.captures(), SizeIs(5));
  EXPECT_EQ(result.captures(0).code(), static_cast<int>(absl::StatusCode::kDataLoss));
  EXPECT_THAT(result.captures(0).message(),
              AllOf(HasSubstr("half.json.gz"), HasSubstr("truncated")));
  EXPECT_THAT(result.captures(1).message(), AllOf(HasSubstr("page.html"), HasSubstr("HTML")));
  EXPECT_EQ(result.captures(2).code(), static_cast<int>(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(result.captures(2).message(), HasSubstr("--page raw --csv"));
  EXPECT_EQ(result.captures(2).kind(), v1::CAPTURE_KIND_NCU_REPORT);
  EXPECT_EQ(result.captures(3).code(), 0);
  EXPECT_NE(result.captures(4).code(), 0);
  MetricOf(result, "compute_throughput", v1::SCOPE_KIND_KERNEL, "nvjet");
  // Nothing of where the file lies gets out.
  for (const v1::CaptureOutcome& outcome : result.captures()) {
    EXPECT_THAT(outcome.message(), Not(HasSubstr(folder_)));
  }
}

TEST_F(ProfilingSpecialistTest, WhenAllFailTheResultSaysWhyNothingIsMeasured) {
  v1::DelegationRequest request = Request({Put("garbage", "x.bin")});
  Want("compute_throughput", &request);
  Want("gpu_busy_share", &request);
  ASSERT_OK_AND_ASSIGN(const v1::DelegationResult result, Run(request));
  EXPECT_NE(result.captures(0).code(), 0);
  EXPECT_THAT(result.metrics(), SizeIs(0));
  for (const char* id : {"compute_throughput", "gpu_busy_share"}) {
    const v1::UnmeasuredMetric* unmeasured = Unmeasured(result, id);
    ASSERT_NE(unmeasured, nullptr) << id;
    EXPECT_EQ(unmeasured->reason(), v1::UNMEASURED_REASON_CAPTURE_UNREADABLE);
    EXPECT_FALSE(unmeasured->remedy().empty());
  }
}

TEST_F(ProfilingSpecialistTest, UnmeasuredMetricsSayWhatIsMissing) {
  v1::DelegationRequest request = Request({PutData("h200/launch.nsys.sqlite.gz")});
  for (const char* id :
       {"compute_throughput", "throughput", "latency", "gpu_utilization", "kernel_time", "mfu"}) {
    Want(id, &request);
  }
  ASSERT_OK_AND_ASSIGN(const v1::DelegationResult result, Run(request));
  EXPECT_EQ(Unmeasured(result, "compute_throughput")->reason(), v1::UNMEASURED_REASON_CAPTURE_KIND);
  EXPECT_EQ(Unmeasured(result, "throughput")->reason(), v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN);
  EXPECT_EQ(Unmeasured(result, "latency")->reason(), v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN);
  EXPECT_EQ(Unmeasured(result, "gpu_utilization")->reason(), v1::UNMEASURED_REASON_CAPTURE_KIND);
  EXPECT_EQ(Unmeasured(result, "kernel_time"), nullptr);
  EXPECT_EQ(Unmeasured(result, "mfu"), nullptr);
}

TEST_F(ProfilingSpecialistTest, ASectionThatWasNotCollectedIsNamed) {
  v1::DelegationRequest request = Request({PutData("h200/bmm.ncu.details.csv")});
  Want("tensor_pipe_utilization", &request);
  Want("warp_stalls", &request);
  Want("gpu_busy_share", &request);
  ASSERT_OK_AND_ASSIGN(const v1::DelegationResult result, Run(request));
  const v1::UnmeasuredMetric* tensor = Unmeasured(result, "tensor_pipe_utilization");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->reason(), v1::UNMEASURED_REASON_NOT_COLLECTED);
  EXPECT_THAT(tensor->detail(),
              AllOf(HasSubstr("sm__pipe_tensor"), HasSubstr("ComputeWorkloadAnalysis")));
  EXPECT_THAT(tensor->remedy(), HasSubstr("raw page"));
  ASSERT_NE(Unmeasured(result, "warp_stall"), nullptr);
  EXPECT_EQ(Unmeasured(result, "gpu_busy_share")->reason(), v1::UNMEASURED_REASON_CAPTURE_KIND);
}

TEST_F(ProfilingSpecialistTest, TheSameCapturesGiveTheSameResult) {
  const v1::DelegationRequest request =
      Request({PutData("h200/comm.rank0.torch.json.gz"), PutData("h200/comm.rank1.torch.json.gz")});
  ASSERT_OK_AND_ASSIGN(const v1::DelegationResult first, Run(request));
  ASSERT_OK_AND_ASSIGN(const v1::DelegationResult second, Run(request));
  EXPECT_EQ(first.SerializeAsString(), second.SerializeAsString());
  ASSERT_THAT(first.timelines(), SizeIs(2));
  EXPECT_EQ(first.timelines(0).rank(), 0);
  EXPECT_EQ(first.timelines(1).rank(), 1);
}

TEST_F(ProfilingSpecialistTest, TheSameArtifactTwiceCountsOnce) {
  const v1::ArtifactReference capture = PutData("h200/axpy.ncu.raw.csv");
  ASSERT_OK_AND_ASSIGN(const v1::DelegationResult result, Run(Request({capture, capture})));
  EXPECT_THAT(result.captures(), SizeIs(1));
  EXPECT_THAT(result.kernels(), SizeIs(2));
}

TEST_F(ProfilingSpecialistTest, AnUnknownArtifactIsAnOutcome) {
  v1::ArtifactReference capture;
  capture.set_id("nowhere");
  capture.set_label("lost.csv");
  ASSERT_OK_AND_ASSIGN(const v1::DelegationResult result, Run(Request({capture})));
  EXPECT_EQ(result.captures(0).code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_THAT(result.captures(0).message(), HasSubstr("lost.csv"));
}

TEST_F(ProfilingSpecialistTest, OtherWorkloadsAndBadRequestsAreRefused) {
  v1::DelegationRequest request;
  EXPECT_THAT(Run(request), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("workload")));
  request.mutable_workload()->mutable_captures();
  EXPECT_THAT(Run(request), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("capture")));
  request.mutable_workload()->mutable_command()->add_argv("./train");
  EXPECT_THAT(Run(request), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("command")));
  request = Request({PutData("h200/axpy.ncu.raw.csv")});
  request.mutable_constraints()->set_kernel_pattern("(");
  EXPECT_THAT(Run(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kernel_pattern")));
}

TEST_F(ProfilingSpecialistTest, StopsWhenItIsTold) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(Run(Request({PutData("h200/axpy.ncu.raw.csv")}), stop.get_token()),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
}

}  // namespace
}  // namespace solward::profiling
