#include "coordinator/workflow/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/classification_parameters.h"
#include "common/status_matchers.h"

namespace solward::workflow {
namespace {

Knowledge BuiltIn() {
  return {BuiltInCatalogue(), BuiltInGpuPeaks(), BuiltInClassificationParameters()};
}

v1::Understanding CapturesWanting(std::initializer_list<const char*> metrics) {
  v1::Understanding understanding;
  v1::AnalysisRequest& request = *understanding.mutable_request();
  request.mutable_workload()->mutable_captures()->add_captures()->set_id("artifact-1");
  for (const char* id : metrics) request.add_desired_metrics()->set_id(id);
  return understanding;
}

v1::Classification Verdict(v1::BottleneckClass primary) {
  v1::Classification classification;
  classification.set_primary(primary);
  return classification;
}

TEST(Plan, AsksTheProfilingSpecialistForWhatIsWanted) {
  ASSERT_OK_AND_ASSIGN(const v1::Plan plan,
                       MakePlan(CapturesWanting({"mfu", "sol"}), "an-1", BuiltIn()));
  ASSERT_EQ(plan.delegations_size(), 1);
  EXPECT_EQ(plan.delegations(0).specialist(), "perf-profiling-specialist");
  EXPECT_EQ(plan.delegations(0).request().desired_metrics_size(), 2);
  EXPECT_EQ(plan.delegations(0).request().workload().captures().captures(0).id(), "artifact-1");
}

TEST(Plan, MadeAgainAsksForTheSameDelegation) {
  ASSERT_OK_AND_ASSIGN(const v1::Plan once, MakePlan(CapturesWanting({"mfu"}), "an-1", BuiltIn()));
  ASSERT_OK_AND_ASSIGN(const v1::Plan again, MakePlan(CapturesWanting({"mfu"}), "an-1", BuiltIn()));
  EXPECT_EQ(once.delegations(0).request().key(), "an-1-1");
  EXPECT_EQ(once.SerializeAsString(), again.SerializeAsString());
}

TEST(Plan, PassesAStatementOnOnlyWhenItSaysWhatAndNotHow) {
  v1::Understanding understanding = CapturesWanting({"sol"});
  understanding.mutable_request()->set_statement("What limits the kernel axpy?");
  ASSERT_OK_AND_ASSIGN(v1::Plan plan, MakePlan(understanding, "an-1", BuiltIn()));
  EXPECT_EQ(plan.delegations(0).request().statement(), "What limits the kernel axpy?");
  understanding.mutable_request()->set_statement("Run NCU with --set=full.");
  ASSERT_OK_AND_ASSIGN(plan, MakePlan(understanding, "an-1", BuiltIn()));
  EXPECT_EQ(plan.delegations(0).request().statement(), "");
}

std::vector<std::pair<std::string, v1::UnmeasuredReason>> Foreseen(const v1::Plan& plan) {
  std::vector<std::pair<std::string, v1::UnmeasuredReason>> out;
  for (const v1::UnmeasuredMetric& metric : plan.foreseen_unmeasured()) {
    out.emplace_back(metric.id(), metric.reason());
  }
  return out;
}

TEST(Plan, ForeseesThatAProfiledCaptureGivesNoThroughput) {
  v1::Understanding understanding = CapturesWanting({"throughput", "sol"});
  understanding.mutable_request()
      ->mutable_workload()
      ->mutable_captures()
      ->mutable_captures(0)
      ->set_kind(v1::CAPTURE_KIND_NCU_CSV_RAW);
  ASSERT_OK_AND_ASSIGN(v1::Plan plan, MakePlan(understanding, "an-1", BuiltIn()));
  EXPECT_THAT(Foreseen(plan), ::testing::ElementsAre(::testing::Pair(
                                  "throughput", v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN)));
  understanding.mutable_request()->mutable_context()->mutable_step_time()->set_value(0.024);
  ASSERT_OK_AND_ASSIGN(plan, MakePlan(understanding, "an-1", BuiltIn()));
  EXPECT_EQ(plan.foreseen_unmeasured_size(), 0);
}

TEST(Plan, ForeseesWhatTheCapturesAndTheContextCannotGive) {
  v1::Understanding understanding = CapturesWanting({"mfu", "sol", "warp_stalls", "idle_share"});
  understanding.mutable_request()
      ->mutable_workload()
      ->mutable_captures()
      ->mutable_captures(0)
      ->set_kind(v1::CAPTURE_KIND_TORCH_TRACE);
  ASSERT_OK_AND_ASSIGN(v1::Plan plan, MakePlan(understanding, "an-1", BuiltIn()));
  EXPECT_THAT(
      Foreseen(plan),
      ::testing::ElementsAre(::testing::Pair("mfu", v1::UNMEASURED_REASON_CONTEXT_MISSING),
                             ::testing::Pair("sol", v1::UNMEASURED_REASON_CAPTURE_KIND),
                             ::testing::Pair("warp_stall", v1::UNMEASURED_REASON_CAPTURE_KIND)));
}

TEST(Plan, HandsOnWhatTheClientSaidAboutTheRun) {
  v1::Understanding understanding = CapturesWanting({"sol"});
  v1::AnalysisRequest& request = *understanding.mutable_request();
  request.mutable_region()->set_nvtx_range("step");
  request.mutable_constraints()->set_kernel_pattern("gemm");
  request.mutable_context()->set_dtype(v1::DTYPE_FP16);
  request.mutable_remote()->set_cluster("a");
  request.set_notes("for people");
  ASSERT_OK_AND_ASSIGN(const v1::Plan plan, MakePlan(understanding, "an-1", BuiltIn()));
  const v1::DelegationRequest& delegation = plan.delegations(0).request();
  EXPECT_EQ(delegation.region().nvtx_range(), "step");
  EXPECT_EQ(delegation.constraints().kernel_pattern(), "gemm");
  EXPECT_EQ(delegation.context().dtype(), v1::DTYPE_FP16);
  EXPECT_EQ(delegation.remote().cluster(), "a");
  EXPECT_EQ(plan.delegations(0).wave(), 1u);
  EXPECT_EQ(plan.delegations(0).why().message_id(), "plan.read_captures");
}

TEST(SecondWave, LaunchOverheadAsksTheCudaGraphSpecialistWithTheEvidence) {
  ASSERT_OK_AND_ASSIGN(const v1::Plan plan, MakePlan(CapturesWanting({"sol"}), "an-1", BuiltIn()));
  v1::Measurement measurement;
  v1::Metric* busy = measurement.add_metrics();
  busy->set_id("gpu_busy_time");
  busy->mutable_scope()->set_kind(v1::SCOPE_KIND_STEP);
  busy->mutable_provenance()->mutable_measured()->set_tool("t");
  measurement.add_metrics()->mutable_scope()->set_kind(v1::SCOPE_KIND_KERNEL);
  const auto wave =
      PlanSecondWave(plan, measurement, Verdict(v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD), "an-1");
  ASSERT_EQ(wave.size(), 1u);
  EXPECT_EQ(wave[0].specialist(), "perf-torch-cuda-graph-specialist");
  EXPECT_EQ(wave[0].wave(), 2u);
  EXPECT_EQ(wave[0].request().key(), "an-1-2");
  ASSERT_EQ(wave[0].request().evidence_size(), 1);
  EXPECT_EQ(wave[0].request().evidence(0).id(), "gpu_busy_time");
}

TEST(SecondWave, CompatibilityThatWasWantedIsAskedForWhateverTheVerdict) {
  ASSERT_OK_AND_ASSIGN(const v1::Plan plan,
                       MakePlan(CapturesWanting({"cuda_graph_compatibility"}), "an-1", BuiltIn()));
  EXPECT_EQ(PlanSecondWave(plan, {}, Verdict(v1::BOTTLENECK_CLASS_MEMORY_BOUND), "an-1").size(),
            1u);
}

TEST(SecondWave, IsAskedOnce) {
  ASSERT_OK_AND_ASSIGN(v1::Plan plan, MakePlan(CapturesWanting({"sol"}), "an-1", BuiltIn()));
  const v1::Classification verdict = Verdict(v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD);
  *plan.add_delegations() = PlanSecondWave(plan, {}, verdict, "an-1").at(0);
  EXPECT_TRUE(PlanSecondWave(plan, {}, verdict, "an-1").empty());
}

TEST(SecondWave, OtherVerdictsAskNobody) {
  ASSERT_OK_AND_ASSIGN(const v1::Plan plan, MakePlan(CapturesWanting({"sol"}), "an-1", BuiltIn()));
  EXPECT_TRUE(PlanSecondWave(plan, {}, Verdict(v1::BOTTLENECK_CLASS_MEMORY_BOUND), "an-1").empty());
}

}  // namespace
}  // namespace solward::workflow
