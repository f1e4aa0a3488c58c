#include "common/problem_context.h"

#include "common/status_matchers.h"

namespace solward {
namespace {

using solward::testing::IsOk;
using solward::testing::IsOkAndHolds;
using solward::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr auto kBad = absl::StatusCode::kInvalidArgument;

TEST(ApplyContextValue, FiguresKeepWhereTheyCameFrom) {
  v1::ProblemContext context;
  ASSERT_THAT(ApplyContextValue("flops_per_call", "68.72 GFLOP", context), IsOk());
  ASSERT_THAT(ApplyContextValue("flops_per_step", "2,5 TFLOP", context), IsOk());
  ASSERT_THAT(ApplyContextValue("step_time", "24ms", context), IsOk());
  ASSERT_THAT(ApplyContextValue("parameters", "7B", context), IsOk());
  ASSERT_THAT(ApplyContextValue("batch", "32", context), IsOk());
  ASSERT_THAT(ApplyContextValue("seq_len", "4096", context), IsOk());
  ASSERT_THAT(ApplyContextValue("world_size", "8", context), IsOk());
  ASSERT_THAT(ApplyContextValue("calls_per_step", "24", context), IsOk());
  EXPECT_DOUBLE_EQ(context.flops_per_call().value(), 68.72e9);
  EXPECT_EQ(context.flops_per_call().field(), "context.flops_per_call");
  EXPECT_DOUBLE_EQ(context.flops_per_step().value(), 2.5e12);
  EXPECT_DOUBLE_EQ(context.step_time().value(), 0.024);
  EXPECT_EQ(context.parameters().value(), 7e9);
  EXPECT_EQ(context.batch_size().value(), 32);
  EXPECT_EQ(context.batch_size().field(), "context.batch_size");
  EXPECT_EQ(context.sequence_length().value(), 4096);
  EXPECT_EQ(context.world_size().value(), 8);
  EXPECT_EQ(context.calls_per_step().value(), 24);
}

TEST(ApplyContextValue, DimensionsMakeOneOperation) {
  v1::ProblemContext context;
  for (const auto& [key, value] :
       {std::pair("B", "32"), {"m", "512"}, {"N", "1024"}, {"K", "2048"}}) {
    ASSERT_THAT(ApplyContextValue(key, value, context), IsOk());
  }
  ASSERT_EQ(context.operations_size(), 1);
  EXPECT_THAT(
      context.operations(0).dimensions(),
      UnorderedElementsAre(Pair("B", 32), Pair("M", 512), Pair("N", 1024), Pair("K", 2048)));
  EXPECT_EQ(KindOfDimensions(context.operations(0)), v1::OPERATION_KIND_BATCHED_GEMM);
}

TEST(ApplyContextValue, WordsOfTheProblem) {
  v1::ProblemContext context;
  ASSERT_THAT(ApplyContextValue("dtype", "BF16", context), IsOk());
  ASSERT_THAT(ApplyContextValue("mode", "training", context), IsOk());
  ASSERT_THAT(ApplyContextValue("gpu", "NVIDIA H200", context), IsOk());
  ASSERT_THAT(ApplyContextValue("operation", "attention", context), IsOk());
  ASSERT_THAT(ApplyContextValue("causal", "true", context), IsOk());
  ASSERT_THAT(ApplyContextValue("backward", "yes", context), IsOk());
  EXPECT_EQ(context.dtype(), v1::DTYPE_BF16);
  EXPECT_EQ(context.mode(), v1::TRAINING_MODE_TRAINING);
  EXPECT_EQ(context.gpu_name(), "NVIDIA H200");
  EXPECT_EQ(context.operations(0).kind(), v1::OPERATION_KIND_ATTENTION);
  EXPECT_TRUE(context.operations(0).causal());
  EXPECT_TRUE(context.operations(0).backward());
}

TEST(ApplyContextValue, UnknownKeyNamesTheClosestAndAll) {
  v1::ProblemContext context;
  const absl::Status status = ApplyContextValue("flops_per_cal", "1 GFLOP", context);
  EXPECT_THAT(status, StatusIs(kBad, HasSubstr("did you mean \"flops_per_call\"?")));
  EXPECT_THAT(status, StatusIs(kBad, HasSubstr("step_time")));
  EXPECT_EQ(ErrorReason(status), "CONTEXT_KEY_UNKNOWN");
  EXPECT_THAT(ApplyContextValue("zzzzzz", "1", context), StatusIs(kBad, Not(HasSubstr("mean"))));
}

TEST(ApplyContextValue, BadValueNamesWhatIsExpectedAndChangesNothing) {
  v1::ProblemContext context;
  ASSERT_THAT(ApplyContextValue("B", "32", context), IsOk());
  const std::string before = context.SerializeAsString();
  EXPECT_THAT(ApplyContextValue("M", "3.5", context), StatusIs(kBad, HasSubstr("whole number")));
  EXPECT_THAT(ApplyContextValue("M", "0", context), StatusIs(kBad, HasSubstr("at least 1")));
  EXPECT_THAT(ApplyContextValue("M", "-4", context), Not(IsOk()));
  EXPECT_THAT(ApplyContextValue("M", "1e300", context), Not(IsOk()));
  EXPECT_THAT(ApplyContextValue("dtype", "fp17", context), StatusIs(kBad, HasSubstr("bf16")));
  EXPECT_THAT(ApplyContextValue("step_time", "24", context), StatusIs(kBad, HasSubstr("24 ms")));
  EXPECT_THAT(ApplyContextValue("step_time", "24 GB", context), Not(IsOk()));
  EXPECT_THAT(ApplyContextValue("flops_per_call", "989 TFLOP/s", context),
              StatusIs(kBad, HasSubstr("a rate is none")));
  EXPECT_THAT(ApplyContextValue("causal", "maybe", context), Not(IsOk()));
  EXPECT_THAT(ApplyContextValue("batch", "", context), Not(IsOk()));
  EXPECT_EQ(context.SerializeAsString(), before);
}

TEST(ApplyDimensions, ReadsPairsAndChains) {
  v1::ProblemContext context;
  ASSERT_THAT(ApplyDimensions("B=32, M=N=K=8192", context), IsOk());
  EXPECT_THAT(
      context.operations(0).dimensions(),
      UnorderedElementsAre(Pair("B", 32), Pair("M", 8192), Pair("N", 8192), Pair("K", 8192)));
}

TEST(ApplyDimensions, AllOrNone) {
  v1::ProblemContext context;
  EXPECT_THAT(ApplyDimensions("B=32 M", context), StatusIs(kBad, HasSubstr("pairs")));
  EXPECT_THAT(ApplyDimensions("", context), Not(IsOk()));
  EXPECT_THAT(ApplyDimensions("B=32 foo=3", context), Not(IsOk()));
  EXPECT_EQ(context.operations_size(), 0);
}

TEST(ParseCount, TakesMultiples) {
  EXPECT_THAT(ParseCount("7B"), IsOkAndHolds(7e9));
  EXPECT_THAT(ParseCount("1.5M"), IsOkAndHolds(1.5e6));
  EXPECT_THAT(ParseCount("1e9"), IsOkAndHolds(1e9));
  EXPECT_THAT(ParseCount("many"), Not(IsOk()));
  EXPECT_THAT(ParseCount("nan"), Not(IsOk()));
}

TEST(CloseNames, OrdersByDistance) {
  EXPECT_THAT(CloseNames("ocupancy", {"occupancy", "latency", "mfu"}), ElementsAre("occupancy"));
  EXPECT_THAT(CloseNames("xyzzyx", {"occupancy", "latency"}), IsEmpty());
  EXPECT_THAT(CloseNames("", {"mfu"}), IsEmpty());
}

}  // namespace
}  // namespace solward
