#include "common/metric_catalogue.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status_matchers.h"

namespace solward {
namespace {

using ::solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

constexpr char kSmall[] = R"yaml(
tool_precedence: [ncu, nsys]
default_metrics: [sol, limits]
metrics:
  - {id: sol, unit: "%", scope: KERNEL, en: "% of SOL", fr: "% de SOL", definition: larger, source: ncu, synonyms: [sol, speed of light]}
  - {id: time, unit: ns, scope: STEP, en: Time, fr: Temps, definition: d, source: s, si: true, decimals: 2, tolerance: 0.1}
formulas:
  - {id: sol_of_two, metric: sol, expression: "max(compute, memory)", source: definition}
groups:
  - {id: limits, metrics: [sol, time], synonyms: [limits]}
)yaml";

absl::StatusOr<MetricCatalogue> ParseWith(absl::string_view from, absl::string_view to) {
  const std::string changed = absl::StrReplaceAll(kSmall, {{from, to}});
  EXPECT_NE(changed, kSmall) << from;
  return MetricCatalogue::Parse(changed);
}

TEST(MetricCatalogueTest, ReadsEveryFieldOfAnEntry) {
  ASSERT_OK_AND_ASSIGN(const MetricCatalogue catalogue, MetricCatalogue::Parse(kSmall));
  const MetricDefinition* sol = catalogue.Find("sol");
  ASSERT_NE(sol, nullptr);
  EXPECT_EQ(sol->unit, "%");
  EXPECT_EQ(sol->default_scope, v1::SCOPE_KIND_KERNEL);
  EXPECT_EQ(sol->name_en, "% of SOL");
  EXPECT_EQ(sol->name_fr, "% de SOL");
  EXPECT_EQ(sol->definition, "larger");
  EXPECT_EQ(sol->source, "ncu");
  EXPECT_THAT(sol->synonyms, ElementsAre("sol", "speed of light"));
  EXPECT_EQ(sol->tolerance, 0.05) << "the default";
  EXPECT_FALSE(sol->si);
  EXPECT_EQ(sol->decimals, 1);

  const MetricDefinition* time = catalogue.Find("time");
  ASSERT_NE(time, nullptr);
  EXPECT_TRUE(time->si);
  EXPECT_EQ(time->decimals, 2);
  EXPECT_EQ(time->tolerance, 0.1);

  const FormulaDefinition* formula = catalogue.FindFormula("sol_of_two");
  ASSERT_NE(formula, nullptr);
  EXPECT_EQ(formula->metric_id, "sol");
  EXPECT_EQ(formula->expression, "max(compute, memory)");
  EXPECT_THAT(formula->inputs, ElementsAre("compute", "memory"));
  EXPECT_EQ(formula->source, "definition");

  EXPECT_THAT(catalogue.tool_precedence(), ElementsAre("ncu", "nsys"));
  EXPECT_THAT(catalogue.default_metrics(), ElementsAre("sol", "limits"));
}

TEST(MetricCatalogueTest, ExpandsAMetricToItselfAndAGroupToItsMembers) {
  ASSERT_OK_AND_ASSIGN(const MetricCatalogue catalogue, MetricCatalogue::Parse(kSmall));
  EXPECT_THAT(catalogue.Expand("sol"), ElementsAre("sol"));
  EXPECT_THAT(catalogue.Expand("limits"), ElementsAre("sol", "time"));
  EXPECT_THAT(catalogue.Expand("nothing"), IsEmpty());
  ASSERT_NE(catalogue.FindGroup("limits"), nullptr);
  EXPECT_EQ(catalogue.Find("limits"), nullptr);
  EXPECT_EQ(catalogue.FindFormula("sol"), nullptr);
  EXPECT_EQ(catalogue.FindGroup("sol"), nullptr);
}

TEST(MetricCatalogueTest, AnUnknownKeyIsNamedWithItsEntry) {
  EXPECT_THAT(ParseWith("tolerance:", "tolerence:"),
              StatusIs(kInvalid, AllOf(HasSubstr("metric \"time\""), HasSubstr("tolerence"))));
  EXPECT_THAT(ParseWith("groups:", "group:"), StatusIs(kInvalid, HasSubstr("\"group\"")));
  EXPECT_THAT(ParseWith("source: definition}", "source: d, unit: ns}"),
              StatusIs(kInvalid, HasSubstr("formula \"sol_of_two\"")));
}

TEST(MetricCatalogueTest, AMissingKeyIsNamedWithItsEntry) {
  EXPECT_THAT(ParseWith("fr: Temps, ", ""),
              StatusIs(kInvalid, AllOf(HasSubstr("metric \"time\""), HasSubstr("\"fr\""))));
  EXPECT_THAT(ParseWith("{id: time, ", "{"),
              StatusIs(kInvalid, AllOf(HasSubstr("entry 1 of metrics"), HasSubstr("\"id\""))));
}

TEST(MetricCatalogueTest, ARepeatedKeyIsAnError) {
  EXPECT_THAT(ParseWith("fr: Temps", "fr: Temps, fr: Duree"),
              StatusIs(kInvalid, HasSubstr("\"fr\" stands there twice")));
}

TEST(MetricCatalogueTest, IdsAreUniqueAndWellFormed) {
  EXPECT_THAT(ParseWith("id: time", "id: sol"), StatusIs(kInvalid, HasSubstr("\"sol\"")));
  EXPECT_THAT(ParseWith("id: limits", "id: sol"),
              StatusIs(kInvalid, HasSubstr("a metric has this id")));
  EXPECT_THAT(ParseWith("id: time", "id: Time"), StatusIs(kInvalid, HasSubstr("lower-case")));
}

TEST(MetricCatalogueTest, ReferencesMustLeadSomewhere) {
  EXPECT_THAT(ParseWith("metric: sol", "metric: soul"),
              StatusIs(kInvalid, AllOf(HasSubstr("sol_of_two"), HasSubstr("\"soul\""))));
  EXPECT_THAT(ParseWith("metrics: [sol, time]", "metrics: [sol, tim]"),
              StatusIs(kInvalid, AllOf(HasSubstr("\"limits\""), HasSubstr("\"tim\""))));
  EXPECT_THAT(ParseWith("default_metrics: [sol,", "default_metrics: [mfu,"),
              StatusIs(kInvalid, HasSubstr("\"mfu\"")));
}

TEST(MetricCatalogueTest, ABadExpressionIsNamedWithItsFormula) {
  EXPECT_THAT(ParseWith("max(compute, memory)", "max(compute memory)"),
              StatusIs(kInvalid, AllOf(HasSubstr("sol_of_two"), HasSubstr("at character"))));
  EXPECT_THAT(ParseWith("max(compute, memory)", "max(1, 2)"),
              StatusIs(kInvalid, HasSubstr("at least one input")));
}

TEST(MetricCatalogueTest, ValuesOfTheWrongKindAreErrors) {
  EXPECT_THAT(ParseWith("scope: STEP", "scope: STEPS"),
              StatusIs(kInvalid, AllOf(HasSubstr("\"time\""), HasSubstr("scope"))));
  EXPECT_THAT(ParseWith("si: true", "si: yes"), StatusIs(kInvalid, HasSubstr("\"si\"")));
  EXPECT_THAT(ParseWith("decimals: 2", "decimals: 2.5"), StatusIs(kInvalid, HasSubstr("decimals")));
  EXPECT_THAT(ParseWith("decimals: 2", "decimals: two"), StatusIs(kInvalid, HasSubstr("decimals")));
  EXPECT_THAT(ParseWith("tolerance: 0.1", "tolerance: -1"),
              StatusIs(kInvalid, HasSubstr("tolerance")));
  EXPECT_THAT(ParseWith("tolerance: 0.1", "tolerance: .inf"),
              StatusIs(kInvalid, HasSubstr("tolerance")));
  EXPECT_THAT(ParseWith("synonyms: [limits]", "synonyms: limits"),
              StatusIs(kInvalid, AllOf(HasSubstr("\"limits\""), HasSubstr("synonyms"))));
}

TEST(MetricCatalogueTest, ASynonymLeadsToOneThing) {
  EXPECT_THAT(ParseWith("synonyms: [limits]", "synonyms: [sol]"),
              StatusIs(kInvalid, HasSubstr("synonym \"sol\"")));
  EXPECT_THAT(ParseWith("synonyms: [limits]", "synonyms: [Limits]"),
              StatusIs(kInvalid, HasSubstr("lower case")));
}

TEST(MetricCatalogueTest, WhatIsNoCatalogueIsAnError) {
  for (const char* bad :
       {"", "[]", "metrics: []", "metrics: {a: 1}", "a: [", "\t", "&a [*a, *b]", "metrics: [1]"}) {
    EXPECT_THAT(MetricCatalogue::Parse(bad), StatusIs(kInvalid, HasSubstr("metrics.yaml"))) << bad;
  }
  EXPECT_THAT(MetricCatalogue::Parse(std::string(2 << 20, ' ')),
              StatusIs(kInvalid, HasSubstr("bytes")));
  EXPECT_FALSE(MetricCatalogue::Parse(std::string(100'000, '[')).ok()) << "deep nesting";
}

// --- the catalogue that programs carry ---------------------------------------

TEST(BuiltInCatalogueTest, HoldsTheMetricsOfTheContract) {
  const MetricCatalogue& catalogue = BuiltInCatalogue();
  for (const char* id : {"mfu", "sol", "compute_throughput", "memory_throughput", "gpu_busy_share",
                         "gpu_utilization", "achieved_occupancy", "tensor_pipe_utilization",
                         "dram_bandwidth", "warp_stall", "kernel_count", "kernel_time",
                         "communication_time", "synchronization_time", "throughput", "latency"}) {
    EXPECT_NE(catalogue.Find(id), nullptr) << id;
  }
  EXPECT_THAT(catalogue.tool_precedence(),
              ElementsAre("solward-timer", "ncu", "nsys", "torch.profiler", "nvidia-smi"));
  EXPECT_THAT(catalogue.default_metrics(), Contains("bottleneck_class"));
}

TEST(BuiltInCatalogueTest, AnMfuNeedsFlopsTimeAndPeak) {
  const FormulaDefinition* mfu = BuiltInCatalogue().FindFormula("mfu_of_kernel");
  ASSERT_NE(mfu, nullptr);
  EXPECT_EQ(mfu->metric_id, "mfu");
  EXPECT_THAT(mfu->inputs, ElementsAre("flops", "time", "peak"));
}

TEST(BuiltInCatalogueTest, CausesOfIdleSumToTheIdleTimeWhenRescaled) {
  // Busy 60 of a step of 100; the profiler saw queued 10, host 20, sync 30.
  const std::map<std::string, double, std::less<>> inputs = {
      {"step_time", 100}, {"busy", 60}, {"queued", 10}, {"host", 20}, {"sync", 30}};
  std::map<std::string, double> shares;
  for (const char* id : {"queued", "host", "sync", "launch"}) {
    const FormulaDefinition* formula =
        BuiltInCatalogue().FindFormula(absl::StrCat("rescaled_idle_", id, "_share"));
    ASSERT_NE(formula, nullptr) << id;
    ASSERT_OK_AND_ASSIGN(shares[id], EvaluateFormula(formula->expression, inputs));
  }
  EXPECT_EQ(shares["queued"], 10);
  EXPECT_EQ(shares["host"], 20);
  EXPECT_EQ(shares["sync"], 10) << "40 of idle less 10 and 20";
  EXPECT_EQ(shares["launch"], 0);
}

}  // namespace
}  // namespace solward
