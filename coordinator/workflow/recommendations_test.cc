#include "coordinator/workflow/recommendations.h"

#include <set>

#include "common/status_matchers.h"
#include "coordinator/report/messages.h"
#include "coordinator/workflow/report_fixture.h"

namespace solward::workflow {
namespace {

using ::solward::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A workload for every entry of the catalogue.
struct Trigger {
  std::string entry;
  bool is_check;
  void (*build)(ReportCase&);
};

void Launch(ReportCase& c) {
  c.AddTimeline({{"kernel", 100}, {"idle_launch", 900}});
  c.measurement.mutable_timelines(0)->add_metric_keys(
      c.Measured("launch_call_count", 2000, StepScope(0)).key());
}
void Sync(ReportCase& c) {
  c.AddTimeline({{"kernel", 100}, {"idle_sync", 900}});
  c.measurement.mutable_timelines(0)->add_metric_keys(
      c.Measured("synchronization_count", 40, StepScope(0)).key());
}
void Host(ReportCase& c) {
  c.AddTimeline({{"kernel", 1000}, {"idle_host", 9000}});
  c.measurement.mutable_timelines(0)->add_metric_keys(
      c.Measured("host_stretch_time", 9e6, StepScope(0)).key());
}
void Transfer(ReportCase& c) { c.AddTimeline({{"kernel", 300}, {"exposed_transfer", 700}}); }
void Communication(ReportCase& c) {
  c.AddTimeline({{"kernel", 600}, {"exposed_communication", 400}});
}
void Compute(ReportCase& c, double tensor, double compute = 70) {
  c.AddCountedKernel("gemm", {.compute = compute, .memory = 30, .tensor = tensor});
}
void Memory(ReportCase& c) {
  c.AddCountedKernel("axpy", {.compute = 10, .memory = 75, .dram = 75, .occupancy = 80});
}
void Latency(ReportCase& c, double occupancy) {
  c.AddCountedKernel("rnn", {.compute = 12, .memory = 15, .dram = 5, .occupancy = occupancy});
}

const Trigger kTriggers[] = {
    {"cuda_graphs", true, Launch},
    {"cuda_graphs", false,
     [](ReportCase& c) {
       Launch(c);
       c.AddFinding("cuda_graph_compatible", v1::SEVERITY_INFO);
     }},
    {"fuse_kernels", false, Launch},
    {"fused_optimizer", true, Launch},
    {"larger_batch", true, Launch},
    {"remove_synchronizations", false,
     [](ReportCase& c) {
       Sync(c);
       c.AddFinding("synchronizations_per_step", v1::SEVERITY_WARNING);
     }},
    {"find_synchronizations", true, Sync},
    {"pin_memory", false,
     [](ReportCase& c) {
       Transfer(c);
       c.AddFinding("unpinned_copies", v1::SEVERITY_WARNING);
     }},
    {"prefetch_transfers", false, Transfer},
    {"loader_workers", true, Host},
    {"move_host_work", true, Host},
    {"overlap_collectives", false, Communication},
    {"fewer_bytes_to_reduce", true, Communication},
    {"tensor_core_dtype", false, [](ReportCase& c) { Compute(c, 1); }},
    {"tensor_core_dtype", true, [](ReportCase& c) { Compute(c, 0); }},
    {"raise_clock", false,
     [](ReportCase& c) {
       Compute(c, 80);
       c.Measured("clock_share", 82, KernelScope("gemm", 0), "ncu", "art-2");
     }},
    {"fuse_memory_traffic", false, Memory},
    {"smaller_dtype", true, Memory},
    {"reuse_cache", true, Memory},
    {"raise_occupancy", false, [](ReportCase& c) { Latency(c, 20); }},
    {"raise_occupancy", true, [](ReportCase& c) { Latency(c, 0); }},
    {"fill_the_gpu", false,
     [](ReportCase& c) {
       Latency(c, 20);
       c.Measured("waves_per_sm", 0.3, KernelScope("rnn", 0), "ncu", "art-2");
     }},
    {"fuse_small_kernels", false, [](ReportCase& c) { Latency(c, 70); }},
};

class EveryEntry : public ::testing::TestWithParam<Trigger> {};

TEST_P(EveryEntry, IsOfferedForWhatItIsFor) {
  ReportCase workload;
  GetParam().build(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  const v1::Recommendation* recommendation = FindRecommendation(report, GetParam().entry);
  ASSERT_NE(recommendation, nullptr) << ::testing::PrintToString(RecommendationIds(report)) << " "
                                     << v1::BottleneckClass_Name(report.classification().primary());
  EXPECT_EQ(recommendation->is_check(), GetParam().is_check);
  EXPECT_EQ(recommendation->bottleneck_class(), report.classification().primary());
  // It rests on findings that the report has.
  EXPECT_FALSE(recommendation->finding_ids().empty());
  std::set<std::string> findings;
  for (const auto& reported : report.findings().findings()) {
    findings.insert(reported.finding().id());
  }
  for (const std::string& id : recommendation->finding_ids()) {
    EXPECT_THAT(findings, Contains(id));
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryEntry, ::testing::ValuesIn(kTriggers),
                         [](const auto& trigger) {
                           return trigger.param.entry +
                                  (trigger.param.is_check ? "_check" : "_action");
                         });

TEST(Catalogue, HasATriggerInThisTestForEveryEntry) {
  std::set<std::string> triggered;
  for (const Trigger& trigger : kTriggers) triggered.insert(trigger.entry);
  EXPECT_GE(BuiltInRecommendations().entries().size(), 12u);
  for (const RecommendationEntry& entry : BuiltInRecommendations().entries()) {
    EXPECT_THAT(triggered, Contains(entry.id));
  }
}

TEST(Catalogue, CoversEveryClass) {
  std::set<v1::BottleneckClass> covered;
  for (const RecommendationEntry& entry : BuiltInRecommendations().entries()) {
    covered.insert(entry.classes.begin(), entry.classes.end());
  }
  for (int value = 1; value < v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS; ++value) {
    EXPECT_THAT(covered, Contains(static_cast<v1::BottleneckClass>(value)));
  }
}

TEST(Catalogue, ItsTextsAreInTheMessageTable) {
  for (const RecommendationEntry& entry : BuiltInRecommendations().entries()) {
    for (const auto& [part, has] :
         {std::pair("action", entry.has_action), std::pair("check", entry.has_check),
          std::pair("verify", true)}) {
      const report::Message* message =
          report::BuiltInMessages().Find("recommendation." + entry.id + "." + part);
      EXPECT_EQ(message != nullptr, has) << entry.id << "." << part;
      if (message == nullptr) continue;
      for (const std::string& name : message->placeholders) {
        EXPECT_TRUE(entry.kernel && name == "kernel") << entry.id << ": {" << name << "}";
      }
    }
  }
}

TEST(Catalogue, MistakesAreNamed) {
  const auto parse = [](const std::string& entry) {
    return RecommendationCatalogue::Parse("recommendations: [{" + entry + "}]", BuiltInCatalogue());
  };
  const std::string texts =
      ", action: {en: a, fr: a}, check: {en: a, fr: a}, verify: {en: a, fr: a}";
  EXPECT_THAT(parse("id: x, classes: [slow], effect: none" + texts),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("slow")));
  EXPECT_THAT(parse("id: x, classes: [sync_bound], effect: tenfold" + texts),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tenfold")));
  EXPECT_THAT(parse("id: x, classes: [sync_bound], effect: none, "
                    "when: [{metric: no_such, is: above, value: 3}]" +
                    texts),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no_such")));
  EXPECT_THAT(parse("id: x, classes: [sync_bound], effect: none, verify: {en: a, fr: a}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("action")));
  EXPECT_THAT(parse("id: x, classes: [undetermined_kernels], effect: none" + texts),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("undetermined_kernels")));
}

TEST(Effect, OfAnOverheadIsItsWholeShare) {
  ReportCase workload;
  Launch(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  const v1::Recommendation* graphs = FindRecommendation(report, "cuda_graphs");
  ASSERT_NE(graphs, nullptr);
  const v1::Metric* bound = FindMetric(report, graphs->effect().metric_key());
  ASSERT_NE(bound, nullptr);
  EXPECT_EQ(bound->id(), "recoverable_share");
  EXPECT_DOUBLE_EQ(bound->value(), 90);  // 900 of 1000 µs
  EXPECT_EQ(graphs->effect().basis(), v1::EFFECT_BASIS_MEASURED_SHARE);
}

TEST(Effect, OfTheClockIsTheTimeAboveIt) {
  ReportCase workload;
  Compute(workload, 80);
  workload.Measured("clock_share", 82, KernelScope("gemm", 0), "ncu", "art-2");
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  const v1::Recommendation* clock = FindRecommendation(report, "raise_clock");
  ASSERT_NE(clock, nullptr);
  const v1::Metric* bound = FindMetric(report, clock->effect().metric_key());
  ASSERT_NE(bound, nullptr);
  EXPECT_NEAR(bound->value(), 18, 1e-9);  // all of the time x (1 - 0.82)
}

TEST(Effect, OfFusingIsNotLimitedByTheRoof) {
  // Fusion removes the bytes themselves: ew_chain of the ground truth ran ten
  // times faster although its kernels sat near the DRAM roof.
  ReportCase workload;
  Memory(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  const v1::Recommendation* fuse = FindRecommendation(report, "fuse_memory_traffic");
  ASSERT_NE(fuse, nullptr);
  const v1::Metric* bound = FindMetric(report, fuse->effect().metric_key());
  ASSERT_NE(bound, nullptr);
  EXPECT_NEAR(bound->value(), 100, 1e-9);
}

TEST(Effect, OfAToolsRuleIsItsOwnEstimate) {
  ReportCase workload;
  Latency(workload, 20);
  const Metric& estimate =
      workload.Measured("tool_speedup_estimate", 33, KernelScope("rnn", 0), "ncu", "art-2");
  v1::Finding& rule = workload.AddFinding("tool_rule", v1::SEVERITY_INFO);
  rule.set_detail("The grid is too small to fill the device.");
  rule.mutable_location()->set_kernel("rnn");
  (*rule.mutable_metric_keys())["estimate"] = estimate.key();
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  const v1::Recommendation* followed = FindRecommendation(report, "tool_rule");
  ASSERT_NE(followed, nullptr);
  EXPECT_EQ(followed->effect().basis(), v1::EFFECT_BASIS_TOOL_ESTIMATE);
  EXPECT_DOUBLE_EQ(FindMetric(report, followed->effect().metric_key())->value(), 33);
  EXPECT_THAT(followed->finding_ids(), ElementsAre("tool_rule"));
}

TEST(Offer, AGraphIsNotOfferedToAGraph) {
  ReportCase workload;
  Launch(workload);
  workload.Measured("graph_launch_count", 20, RunScope(0));
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_THAT(RecommendationIds(report), Not(Contains("cuda_graphs")));
}

TEST(Offer, NorWhereTheSpecialistSaysItCannotBe) {
  ReportCase workload;
  Launch(workload);
  workload.AddFinding("cuda_graph_incompatible", v1::SEVERITY_WARNING);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_THAT(RecommendationIds(report), Not(Contains("cuda_graphs")));
}

TEST(Offer, AFindingOfASmallerClassIsRecommendedWithItsOwnBound) {
  ReportCase workload;
  workload.AddTimeline({{"kernel", 100}, {"idle_launch", 870}, {"idle_sync", 30}});
  workload.measurement.mutable_timelines(0)->add_metric_keys(
      workload.Measured("launch_call_count", 2000, StepScope(0)).key());
  workload.AddFinding("synchronizations_per_step", v1::SEVERITY_WARNING);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_EQ(report.classification().primary(), v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD);
  const v1::Recommendation* remove = FindRecommendation(report, "remove_synchronizations");
  ASSERT_NE(remove, nullptr);
  EXPECT_EQ(remove->bottleneck_class(), v1::BOTTLENECK_CLASS_SYNC_BOUND);
  EXPECT_NEAR(FindMetric(report, remove->effect().metric_key())->value(), 3, 1e-9);
  // After those of the verdict's own class.
  EXPECT_EQ(RecommendationIds(report).back(), "remove_synchronizations");
}

TEST(Offer, ASmallClassWithoutAFindingIsLeftAlone) {
  ReportCase workload;
  workload.AddTimeline({{"kernel", 100}, {"idle_launch", 870}, {"exposed_transfer", 30}});
  workload.measurement.mutable_timelines(0)->add_metric_keys(
      workload.Measured("launch_call_count", 2000, StepScope(0)).key());
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_THAT(RecommendationIds(report), Not(Contains("prefetch_transfers")));
}

TEST(Offer, PrioritiesCountFromOne) {
  ReportCase workload;
  Launch(workload);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  uint32_t expected = 0;
  for (const auto& recommendation : report.recommendations().recommendations()) {
    EXPECT_EQ(recommendation.priority(), ++expected);
  }
  EXPECT_GE(expected, 3u);
}

TEST(Undetermined, GetsOnlyWhatWouldSettleIt) {
  ReportCase kernels;
  kernels.AddTimeline({{"kernel", 950}, {"idle_queued", 50}});
  ReportCase dilated;
  dilated.AddTimeline({{"kernel", 500}, {"idle_launch", 500}});
  for (ReportCase* workload : {&kernels, &dilated}) {
    ASSERT_OK_AND_ASSIGN(const v1::Report report, workload->Report());
    EXPECT_GE(report.classification().primary(), v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS);
    EXPECT_FALSE(report.recommendations().recommendations().empty());
    for (const auto& recommendation : report.recommendations().recommendations()) {
      EXPECT_EQ(recommendation.id(), "measure");
      EXPECT_TRUE(recommendation.is_check());
      EXPECT_FALSE(recommendation.has_effect());
      EXPECT_FALSE(recommendation.finding_ids().empty());
    }
  }
}

TEST(NoRecommendation, SaysThatItIsNearItsSpeedOfLight) {
  // Nothing in the catalogue for a tensor-core kernel at 94 % of its roof.
  ReportCase workload;
  Compute(workload, 90, 94);
  ASSERT_OK_AND_ASSIGN(const v1::Report report, workload.Report());
  EXPECT_THAT(RecommendationIds(report), IsEmpty());
  const v1::Statement& why = report.recommendations().none_because();
  EXPECT_EQ(why.message_id(), "none.near_speed_of_light");
  EXPECT_NEAR(FindMetric(report, why.arguments().at("recoverable").metric_key())->value(), 6, 1e-9);
}

}  // namespace
}  // namespace solward::workflow
