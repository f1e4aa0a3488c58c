#include "common/metric.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/status_matchers.h"

namespace solward {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

constexpr char kCatalogue[] = R"yaml(
tool_precedence: [ncu]
metrics:
  - {id: time, unit: ns, scope: KERNEL, en: Time, fr: Temps, definition: d, source: s}
  - {id: flops, unit: "{FLOP}", scope: KERNEL, en: FLOPs, fr: FLOP, definition: d, source: s}
  - {id: peak, unit: "{FLOP}/s", scope: DEVICE, en: Peak, fr: Crete, definition: d, source: s}
  - {id: mfu, unit: "%", scope: KERNEL, en: MFU, fr: MFU, definition: d, source: s}
formulas:
  - {id: mfu, metric: mfu, expression: "flops / (time * 1e-9) / peak * 100", source: s}
  - {id: sum, metric: time, expression: "a + b", source: s}
)yaml";

const MetricCatalogue& Catalogue() {
  static const MetricCatalogue catalogue = *MetricCatalogue::Parse(kCatalogue);
  return catalogue;
}

v1::Measured FromNcu() {
  v1::Measured measured;
  measured.set_tool("ncu");
  measured.set_artifact_id("a-1");
  measured.set_raw_name("gpu__time_duration.sum");
  measured.mutable_rows()->set_table("raw");
  measured.set_aggregation(v1::AGGREGATION_SINGLE);
  measured.set_samples(1);
  return measured;
}

v1::Given FromContext() {
  v1::Given given;
  given.set_field("context.flops_per_call");
  return given;
}

v1::Reference FromTable() {
  v1::Reference reference;
  reference.set_table("gpu_peaks");
  reference.set_row("H200-SXM");
  return reference;
}

absl::StatusOr<Metric> Time(double value, v1::Measured provenance = FromNcu()) {
  return Metric::Measure(Catalogue(), "time", value, KernelScope("k", 0), std::move(provenance));
}

// A set of the inputs of an MFU.
MetricSet Inputs() {
  MetricSet set;
  set.Add(*Metric::Give(Catalogue(), "flops", 1e9, KernelScope("k", 0), FromContext()));
  set.Add(*Time(2e3));
  set.Add(*Metric::Refer(Catalogue(), "peak", 1e15, DeviceScope(0), FromTable()));
  return set;
}

std::vector<std::pair<std::string, const Metric*>> Named(const MetricSet& set) {
  return {{"flops", set.FindKey("m1")}, {"time", set.FindKey("m2")}, {"peak", set.FindKey("m3")}};
}

TEST(MetricTest, AMeasuredOneHasTheUnitOfTheCatalogueAndItsProvenance) {
  ASSERT_OK_AND_ASSIGN(const Metric metric, Time(100350));
  EXPECT_EQ(metric.id(), "time");
  EXPECT_EQ(metric.value(), 100350);
  EXPECT_EQ(metric.unit(), "ns");
  EXPECT_EQ(metric.scope().name(), "k");
  EXPECT_EQ(metric.provenance().measured().raw_name(), "gpu__time_duration.sum");
  EXPECT_EQ(metric.key(), "") << "a key comes with a set";
}

TEST(MetricTest, AMeasuredOneNeedsAllOfItsProvenance) {
  const auto without = [](auto clear) {
    v1::Measured measured = FromNcu();
    clear(measured);
    return Time(1, measured).status();
  };
  EXPECT_THAT(without([](auto& m) { m.clear_tool(); }), StatusIs(kInvalid, HasSubstr("tool")));
  EXPECT_THAT(without([](auto& m) { m.clear_artifact_id(); }),
              StatusIs(kInvalid, HasSubstr("artifact")));
  EXPECT_THAT(without([](auto& m) { m.clear_raw_name(); }), StatusIs(kInvalid, HasSubstr("name")));
  EXPECT_THAT(without([](auto& m) { m.clear_rows(); }), StatusIs(kInvalid, HasSubstr("table")));
  EXPECT_THAT(without([](auto& m) { m.clear_aggregation(); }),
              StatusIs(kInvalid, HasSubstr("aggregation")));
  EXPECT_THAT(without([](auto& m) { m.set_aggregation(static_cast<v1::Aggregation>(99)); }),
              StatusIs(kInvalid, HasSubstr("aggregation")));
  EXPECT_THAT(without([](auto& m) { m.set_unit_scale(std::nan("")); }),
              StatusIs(kInvalid, HasSubstr("unit scale")));
  EXPECT_THAT(without([](auto& m) { m.mutable_spread()->set_stddev(INFINITY); }),
              StatusIs(kInvalid, HasSubstr("spread")));
  EXPECT_THAT(without([](auto& m) { m.mutable_rows()->add_ranges()->set_first(3); }),
              StatusIs(kInvalid, HasSubstr("first <= last")));
  EXPECT_THAT(without([](auto& m) { m.mutable_rows()->add_conditions()->set_value("3"); }),
              StatusIs(kInvalid, HasSubstr("column")));
}

TEST(MetricTest, AGivenOneNeedsItsField) {
  EXPECT_THAT(Metric::Give(Catalogue(), "flops", 1, RunScope(), {}),
              StatusIs(kInvalid, HasSubstr("field")));
  EXPECT_THAT(Metric::Give(Catalogue(), "flops", 1, RunScope(), FromContext()), IsOk());
}

TEST(MetricTest, AReferenceNeedsTableAndRow) {
  v1::Reference reference = FromTable();
  reference.clear_row();
  EXPECT_THAT(Metric::Refer(Catalogue(), "peak", 1, DeviceScope(0), reference),
              StatusIs(kInvalid, HasSubstr("table and row")));
  EXPECT_THAT(Metric::Refer(Catalogue(), "peak", 1, DeviceScope(0), FromTable()), IsOk());
}

TEST(MetricTest, TheIdMustBeInTheCatalogue) {
  EXPECT_THAT(Metric::Measure(Catalogue(), "speed", 1, RunScope(), FromNcu()),
              StatusIs(kInvalid, AllOf(HasSubstr("\"speed\""), HasSubstr("catalogue"))));
}

TEST(MetricTest, TheValueIsFiniteAndTheScopeSet) {
  EXPECT_THAT(Time(std::numeric_limits<double>::quiet_NaN()), StatusIs(kInvalid, HasSubstr("fin")));
  EXPECT_THAT(Time(std::numeric_limits<double>::infinity()), StatusIs(kInvalid, HasSubstr("fin")));
  EXPECT_THAT(Metric::Measure(Catalogue(), "time", 1, v1::Scope(), FromNcu()),
              StatusIs(kInvalid, HasSubstr("scope")));
}

// 1e9 FLOP in 2 us is 5e14 FLOP/s: half of 1e15.
TEST(MetricTest, ADerivedOneIsComputedByItsFormula) {
  const MetricSet set = Inputs();
  ASSERT_OK_AND_ASSIGN(const Metric mfu,
                       Metric::Derive(Catalogue(), "mfu", KernelScope("k", 0), Named(set)));
  EXPECT_THAT(mfu.value(), DoubleEq(50));
  EXPECT_EQ(mfu.id(), "mfu");
  EXPECT_EQ(mfu.unit(), "%");
  const v1::Derived& derived = mfu.provenance().derived();
  EXPECT_EQ(derived.formula_id(), "mfu");
  ASSERT_EQ(derived.inputs_size(), 3);
  EXPECT_EQ(derived.inputs(1).name(), "time");
  EXPECT_EQ(derived.inputs(1).metric_key(), "m2");
}

TEST(MetricTest, ADerivedOneNeedsExactlyTheInputsOfItsFormula) {
  const MetricSet set = Inputs();
  const auto derive = [&](auto change) {
    auto inputs = Named(set);
    change(inputs);
    return Metric::Derive(Catalogue(), "mfu", KernelScope("k", 0), inputs).status();
  };
  EXPECT_THAT(derive([](auto& in) { in.pop_back(); }),
              StatusIs(kInvalid, HasSubstr("expected inputs flops, peak, time")));
  EXPECT_THAT(derive([](auto& in) { in.emplace_back("extra", in[0].second); }),
              StatusIs(kInvalid, HasSubstr("found extra, flops")));
  EXPECT_THAT(derive([](auto& in) { in.push_back(in[0]); }),
              StatusIs(kInvalid, HasSubstr("expected inputs")));
  EXPECT_THAT(derive([](auto& in) { in[0].second = nullptr; }),
              StatusIs(kInvalid, HasSubstr("a metric of a set")));
  const Metric loose = *Time(1);
  EXPECT_THAT(derive([&](auto& in) { in[1].second = &loose; }),
              StatusIs(kInvalid, HasSubstr("a metric of a set")));
  EXPECT_THAT(Metric::Derive(Catalogue(), "nope", RunScope(), {}),
              StatusIs(kInvalid, HasSubstr("\"nope\"")));
}

TEST(MetricTest, ADerivedOneIsNeverInfinite) {
  MetricSet set = Inputs();
  auto inputs = Named(set);
  inputs[1].second = &set.Add(*Time(0));
  EXPECT_THAT(Metric::Derive(Catalogue(), "mfu", KernelScope("k", 0), inputs),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"mfu\""), HasSubstr("division by zero"))));
}

TEST(MetricTest, AReceivedOneIsCheckedAlike) {
  v1::Metric proto = Time(5)->proto();
  EXPECT_THAT(Metric::FromProto(Catalogue(), proto), IsOk());
  v1::Metric other_unit = proto;
  other_unit.set_unit("ms");
  EXPECT_THAT(Metric::FromProto(Catalogue(), other_unit),
              StatusIs(kInvalid, HasSubstr("expected unit \"ns\", found \"ms\"")));
  v1::Metric bare = proto;
  bare.clear_provenance();
  EXPECT_THAT(Metric::FromProto(Catalogue(), bare), StatusIs(kInvalid, HasSubstr("provenance")));
  v1::Metric wrong_formula = proto;
  wrong_formula.mutable_provenance()->mutable_derived()->set_formula_id("mfu");
  EXPECT_THAT(Metric::FromProto(Catalogue(), wrong_formula),
              StatusIs(kInvalid, HasSubstr("formula \"mfu\" gives \"mfu\"")));
}

TEST(MetricSetTest, GivesKeysAndFindsByThemAndByScope) {
  MetricSet set;
  const Metric& first = set.Add(*Time(1));
  v1::Scope other = KernelScope("other", 1, 2);
  const Metric& second = set.Add(*Metric::Measure(Catalogue(), "time", 2, other, FromNcu()));
  EXPECT_EQ(first.key(), "m1");
  EXPECT_EQ(second.key(), "m2");
  EXPECT_EQ(set.FindKey("m2"), &second);
  EXPECT_EQ(set.FindKey("m3"), nullptr);
  EXPECT_EQ(set.Find("time", KernelScope("k", 0)), &first);
  EXPECT_EQ(set.Find("time", other), &second);
  EXPECT_EQ(set.Find("time", KernelScope("k", 1)), nullptr) << "another device";
  EXPECT_EQ(set.Find("mfu", other), nullptr);
  EXPECT_THAT(set.FindAll("time"), ::testing::ElementsAre(&first, &second));
  EXPECT_EQ(set.size(), 2u);
}

TEST(MetricSetTest, ReferencesStayValidWhileItGrowsAndMoves) {
  MetricSet set;
  const Metric& first = set.Add(*Time(1));
  for (int i = 0; i < 5000; ++i) set.Add(*Time(i));
  const MetricSet moved = std::move(set);
  EXPECT_EQ(first.value(), 1);
  EXPECT_EQ(moved.FindKey("m1"), &first);
}

// --- merging the message of another process ----------------------------------

google::protobuf::RepeatedPtrField<v1::Metric> Message(const MetricSet& set) {
  google::protobuf::RepeatedPtrField<v1::Metric> out;
  for (const Metric& metric : set.metrics()) *out.Add() = metric.proto();
  return out;
}

// flops m1, time m2, peak m3, mfu m4.
google::protobuf::RepeatedPtrField<v1::Metric> MfuMessage() {
  MetricSet set = Inputs();
  set.Add(*Metric::Derive(Catalogue(), "mfu", KernelScope("k", 0), Named(set)));
  return Message(set);
}

TEST(MetricSetMergeTest, RewritesTheInputsOfDerivedMetrics) {
  MetricSet set;
  set.Add(*Time(7));
  ASSERT_OK_AND_ASSIGN(const auto keys, set.Merge(Catalogue(), MfuMessage()));
  EXPECT_EQ(keys.at("m1"), "m2");
  EXPECT_EQ(keys.at("m4"), "m5");
  const Metric* mfu = set.FindKey("m5");
  ASSERT_NE(mfu, nullptr);
  for (const v1::DerivedInput& input : mfu->provenance().derived().inputs()) {
    const Metric* from = set.FindKey(input.metric_key());
    ASSERT_NE(from, nullptr);
    EXPECT_EQ(from->id(), input.name());
  }
  EXPECT_EQ(set.FindKey("m1")->value(), 7) << "what was there stays";
}

TEST(MetricSetMergeTest, TakesAMessageInAnyOrder) {
  auto message = MfuMessage();
  message.SwapElements(0, 3);
  MetricSet set;
  ASSERT_OK_AND_ASSIGN(const auto keys, set.Merge(Catalogue(), message));
  EXPECT_EQ(keys.size(), 4u);
  EXPECT_EQ(set.metrics().back().id(), "mfu") << "after its inputs";
  EXPECT_THAT(set.Merge(Catalogue(), Message(set)), IsOk()) << "and it can be merged again";
}

TEST(MetricSetMergeTest, AFaultyMessageAddsNothing) {
  const auto refused = [](auto change, absl::string_view why) {
    auto message = MfuMessage();
    change(message);
    MetricSet set;
    EXPECT_THAT(set.Merge(Catalogue(), message), StatusIs(kInvalid, HasSubstr(std::string(why))));
    EXPECT_EQ(set.size(), 0u);
  };
  const auto derived = [](v1::Metric* metric) {
    return metric->mutable_provenance()->mutable_derived();
  };
  refused([](auto& m) { m.Mutable(2)->clear_provenance(); }, "provenance");
  refused([](auto& m) { m.DeleteSubrange(1, 1); }, "no metric has key \"m2\"");
  refused([](auto& m) { m.Mutable(1)->set_key("m1"); }, "\"m1\" stands there twice");
  refused([](auto& m) { m.Mutable(0)->clear_key(); }, "expected a key");
  refused([&](auto& m) { derived(m.Mutable(3))->mutable_inputs(0)->set_metric_key("m4"); },
          "derived from itself");
  refused([&](auto& m) { derived(m.Mutable(3))->mutable_inputs(0)->clear_metric_key(); },
          "has no metric");
}

TEST(MetricSetMergeTest, ADerivedValueIsWhatItsFormulaGives) {
  auto message = MfuMessage();
  message.Mutable(3)->set_value(51);
  MetricSet set;
  EXPECT_THAT(set.Merge(Catalogue(), message),
              StatusIs(kInvalid, AllOf(HasSubstr("gives 50"), HasSubstr("found 51"))));
}

// x = y + y and y = x + x.
TEST(MetricSetMergeTest, ACycleOfTwoIsRefused) {
  MetricSet from;
  const Metric& a = from.Add(*Time(0));
  const Metric& b =
      from.Add(*Metric::Derive(Catalogue(), "sum", RunScope(), {{"a", &a}, {"b", &a}}));
  from.Add(*Metric::Derive(Catalogue(), "sum", RunScope(), {{"a", &b}, {"b", &b}}));
  auto message = Message(from);
  for (v1::DerivedInput& input :
       *message.Mutable(1)->mutable_provenance()->mutable_derived()->mutable_inputs()) {
    input.set_metric_key("m3");
  }
  MetricSet set;
  EXPECT_THAT(set.Merge(Catalogue(), message), StatusIs(kInvalid, HasSubstr("itself")));
}

TEST(MetricSetMergeTest, AChainMayBeAsLongAsAMessage) {
  MetricSet from;
  const Metric* one = &from.Add(*Time(1));
  const Metric* last = one;
  constexpr int kLinks = 20'000;
  for (int i = 0; i < kLinks; ++i) {
    last = &from.Add(*Metric::Derive(Catalogue(), "sum", RunScope(), {{"a", last}, {"b", one}}));
  }
  auto message = Message(from);
  std::reverse(message.begin(), message.end());
  MetricSet set;
  ASSERT_THAT(set.Merge(Catalogue(), message), IsOk());
  EXPECT_EQ(set.metrics().back().value(), kLinks + 1);
}

}  // namespace
}  // namespace solward
