#include "coordinator/workflow/flops.h"

#include "common/problem_context.h"
#include "common/status_matchers.h"

namespace solward::workflow {
namespace {

using solward::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::ProblemContext Context(const std::vector<std::pair<const char*, const char*>>& values) {
  v1::ProblemContext context;
  for (const auto& [key, value] : values) {
    EXPECT_THAT(ApplyContextValue(key, value, context), IsOk()) << key;
  }
  return context;
}

MetricSet Metrics(const v1::ProblemContext& context) {
  absl::StatusOr<MetricSet> metrics = ContextMetrics(context, BuiltInCatalogue());
  EXPECT_THAT(metrics, IsOk());
  return metrics.ok() ? *std::move(metrics) : MetricSet();
}

double Only(const MetricSet& metrics, absl::string_view id) {
  const auto all = metrics.FindAll(id);
  EXPECT_THAT(all, SizeIs(1)) << id;
  return all.empty() ? 0 : all.front()->value();
}

std::vector<std::string> Missing(const v1::ProblemContext& context) {
  return RecipeOf(context.operations(0), context).missing;
}

TEST(Flops, BatchedGemmIsTwoBMNK) {
  // The batched GEMM of the captures: 2 * 32 * 512 * 1024 * 2048.
  const MetricSet metrics = Metrics(Context({{"dimensions", "B=32 M=512 N=1024 K=2048"}}));
  EXPECT_EQ(Only(metrics, "flops_per_call"), 68'719'476'736.0);
  const Metric* flops = metrics.FindAll("flops_per_call").front();
  EXPECT_EQ(flops->provenance().derived().formula_id(), "gemm_flops");
  EXPECT_THAT(metrics.FindAll("dimension"), SizeIs(4));
  const v1::Metric& dimension = metrics.FindAll("dimension").front()->proto();
  EXPECT_EQ(dimension.scope().name(), "B");
  EXPECT_EQ(dimension.provenance().given().field(), "context.operations.dimensions");
}

TEST(Flops, PlainGemmNeedsNoBatch) {
  EXPECT_EQ(Only(Metrics(Context({{"dimensions", "M=N=K=8192"}})), "flops_per_call"),
            2.0 * 8192 * 8192 * 8192);
}

TEST(Flops, BatchedGemmWithoutBatchSaysSo) {
  const auto context = Context({{"operation", "bmm"}, {"dimensions", "M=1 N=2 K=3"}});
  EXPECT_THAT(Missing(context), ElementsAre("B"));
  EXPECT_THAT(Metrics(context).FindAll("flops_per_call"), IsEmpty());
}

TEST(Flops, BackwardCostsTwiceTheForward) {
  EXPECT_EQ(Only(Metrics(Context({{"dimensions", "M=2 N=3 K=4"}, {"backward", "true"}})),
                 "flops_per_call"),
            3 * 2.0 * 2 * 3 * 4);
}

TEST(Flops, ConvolutionComputesItsOutput) {
  // ResNet-50's 3x3 layer: 56x56 in and out, 64 to 64 channels, batch 32:
  // 2 * 32 * 64 * 56 * 56 * 64 * 3 * 3.
  const auto context =
      Context({{"dimensions", "N=32 C=64 H=56 W=56 K=64 R=3 S=3 stride=1 padding=1"}});
  EXPECT_EQ(Only(Metrics(context), "flops_per_call"), 2.0 * 32 * 64 * 56 * 56 * 64 * 9);
}

TEST(Flops, ConvolutionWithGroupsStrideAndDilation) {
  // (29 + 0 - 2 * (3 - 1) - 1) / 2 + 1 = 13.
  const auto context = Context({{"dimensions",
                                 "N=1 C=8 H=29 W=29 K=8 R=3 S=3 stride=2 padding=0 dilation=2 "
                                 "groups=4"}});
  EXPECT_EQ(Only(Metrics(context), "flops_per_call"), 2.0 * 1 * 8 * 13 * 13 * 2 * 9);
}

TEST(Flops, ConvolutionAssumesNoStrideAndNoPadding) {
  EXPECT_THAT(Missing(Context({{"dimensions", "N=64 C=128 H=56 W=56 K=128 R=3 S=3"}})),
              ElementsAre("stride", "padding"));
  // (56 - 3) / 2 leaves a rest: the client says how many rows there are.
  EXPECT_THAT(
      Missing(Context({{"dimensions", "N=1 C=1 H=56 W=57 K=1 R=3 S=3 stride=2 padding=0"}})),
      ElementsAre("P"));
}

TEST(Flops, AttentionCountsTwoProducts) {
  // 4 * B * H * S * S * D; sequence and batch may come from the context.
  const auto context = Context({{"batch", "8"},
                                {"sequence", "4096"},
                                {"H", "16"},
                                {"D", "128"},
                                {"operation", "attention"}});
  EXPECT_EQ(Only(Metrics(context), "flops_per_call"), 4.0 * 8 * 16 * 4096 * 4096 * 128);
  EXPECT_EQ(
      Only(Metrics(Context({{"dimensions", "B=8 H=16 S=1 S_kv=4096 D=128"}})), "flops_per_call"),
      4.0 * 8 * 16 * 1 * 4096 * 128);
}

TEST(Flops, CausalAttentionCountsHalfAndTrainingThreeTimesThat) {
  auto context = Context({{"dimensions", "B=4 H=32 S=8192 D=128"}, {"causal", "true"}});
  const double half = 2.0 * 4 * 32 * 8192 * 8192 * 128;
  EXPECT_EQ(Only(Metrics(context), "flops_per_call"), half);
  context.mutable_operations(0)->set_backward(true);
  EXPECT_EQ(Only(Metrics(context), "flops_per_call"), 3 * half);
}

TEST(Flops, TransformerTrainingIsSixPerParameterAndToken) {
  const auto stated = Context({{"parameters", "7B"}, {"tokens", "65536"}});
  EXPECT_EQ(Only(Metrics(stated), "flops_per_step"), 6.0 * 7e9 * 65536);
  const auto of_batch = Context({{"parameters", "7B"},
                                 {"batch", "16"},
                                 {"sequence", "4096"},
                                 {"operation", "transformer_training"}});
  EXPECT_EQ(Only(Metrics(of_batch), "flops_per_step"), 6.0 * 7e9 * 16 * 4096);
}

TEST(Flops, LargestDimensionsDoNotOverflow) {
  const auto context = Context({{"dimensions",
                                 "B=9007199254740992 M=9007199254740992 "
                                 "N=9007199254740992 K=9007199254740992"}});
  EXPECT_DOUBLE_EQ(Only(Metrics(context), "flops_per_call"), 2 * std::pow(2.0, 53 * 4));
}

TEST(ContextMetrics, DerivedFlopsComeBeforeGivenOnes) {
  const MetricSet metrics = Metrics(
      Context({{"flops_per_call", "68.72 GFLOP"}, {"dimensions", "B=32 M=512 N=1024 K=2048"}}));
  const auto all = metrics.FindAll("flops_per_call");
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_TRUE(all[0]->provenance().has_derived());
  EXPECT_TRUE(all[1]->provenance().has_given());
}

TEST(ContextMetrics, EveryFigureIsGivenInTheCataloguesUnit) {
  const MetricSet metrics = Metrics(Context({{"step_time", "24 ms"},
                                             {"batch", "32"},
                                             {"sequence", "4096"},
                                             {"world_size", "8"},
                                             {"calls_per_step", "24"},
                                             {"parameters", "7B"},
                                             {"flops_per_step", "2.5 TFLOP"}}));
  EXPECT_DOUBLE_EQ(Only(metrics, "step_time"), 24e6);  // ns
  EXPECT_EQ(Only(metrics, "batch_size"), 32);
  EXPECT_EQ(Only(metrics, "sequence_length"), 4096);
  EXPECT_EQ(Only(metrics, "world_size"), 8);
  EXPECT_EQ(Only(metrics, "calls_per_step"), 24);
  EXPECT_EQ(Only(metrics, "parameters"), 7e9);
  EXPECT_EQ(Only(metrics, "flops_per_step"), 2.5e12);
  EXPECT_EQ(metrics.FindAll("step_time").front()->provenance().given().field(),
            "context.step_time");
}

}  // namespace
}  // namespace solward::workflow
