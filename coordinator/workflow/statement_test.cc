#include "coordinator/workflow/statement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/gpu_peaks.h"
#include "common/problem_context.h"

namespace solward::workflow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

StatementContent Read(absl::string_view text) { return ReadStatement(text, BuiltInCatalogue()); }

std::string Describe(const StatementContent& content) {
  std::string out;
  for (const v1::StatementReading& r : content.readings) {
    absl::StrAppend(&out, "  ", r.kind(), ": \"", r.text(), "\" -> ", r.meaning(), "\n");
  }
  return out;
}

// --- the independent list ----------------------------------------------------

YAML::Node Cases() {
  const char* root = std::getenv("SOLWARD_SOURCE_DIR");
  if (root == nullptr) {
    ADD_FAILURE() << "SOLWARD_SOURCE_DIR is not set";
    return YAML::Node(YAML::NodeType::Map);
  }
  return YAML::LoadFile(absl::StrCat(root, "/tests/data/statement_cases.yaml"));
}

void ExpectFigure(const YAML::Node& expect, const char* key,
                  const std::optional<StatedFigure>& figure) {
  ASSERT_EQ(figure.has_value(), expect[key].IsDefined()) << key;
  if (figure) {
    EXPECT_DOUBLE_EQ(figure->value, expect[key].as<double>()) << key;
  }
}

std::string RegionName(const std::optional<v1::Region>& region) {
  if (!region) return "";
  if (region->has_cuda_profiler_api()) return "cuda_profiler_api";
  if (region->has_profiler_step()) return "profiler_step";
  return absl::StrCat("nvtx:", region->nvtx_range());
}

void ExpectNames(const YAML::Node& expect, const StatementContent& content) {
  const auto strings = [&](const char* key) {
    return expect[key] ? expect[key].as<std::vector<std::string>>() : std::vector<std::string>{};
  };
  EXPECT_THAT(content.metrics, UnorderedElementsAreArray(strings("metrics")));
  EXPECT_THAT(content.files, UnorderedElementsAreArray(strings("files")));
  std::map<std::string, int64_t> dimensions;
  if (expect["dimensions"]) dimensions = expect["dimensions"].as<std::map<std::string, int64_t>>();
  EXPECT_EQ(content.dimensions, dimensions);
  EXPECT_EQ(DtypeName(content.dtype),
            expect["dtype"] ? expect["dtype"].as<std::string>() : DtypeName(v1::DTYPE_UNSPECIFIED));
  EXPECT_EQ(RegionName(content.region), expect["region"] ? expect["region"].as<std::string>() : "");
  EXPECT_EQ(content.kernel_pattern, expect["kernel"] ? expect["kernel"].as<std::string>() : "");
  EXPECT_EQ(OperationKindName(content.operation),
            expect["operation"] ? expect["operation"].as<std::string>() : "");
}

bool IsFoundAgain(const std::string& number, const StatementContent& content) {
  for (const v1::StatementReading& reading : content.readings) {
    if (absl::StrContains(reading.text(), number)) return true;
  }
  return false;
}

// Written by someone who saw only what a statement may say, not the grammar.
TEST(StatementCases, EveryCaseOfTheIndependentList) {
  const YAML::Node cases = Cases()["cases"];
  ASSERT_GE(cases.size(), 60u);
  for (const YAML::Node& c : cases) {
    const StatementContent content = Read(c["text"].as<std::string>());
    SCOPED_TRACE(absl::StrCat(c["id"].as<std::string>(), ": ", c["text"].as<std::string>(), "\n",
                              Describe(content)));
    const YAML::Node expect = c["expect"];
    ExpectNames(expect, content);
    ExpectFigure(expect, "flops_per_call", content.flops_per_call);
    ExpectFigure(expect, "flops_per_step", content.flops_per_step);
    ExpectFigure(expect, "batch_size", content.batch_size);
    ExpectFigure(expect, "sequence_length", content.sequence_length);
    ExpectFigure(expect, "step_time_s", content.step_time);
    ExpectFigure(expect, "world_size", content.world_size);
    EXPECT_THAT(content.twice, IsEmpty());
    EXPECT_THAT(content.not_understood, IsEmpty());
    for (const std::string& number : c["numbers"].as<std::vector<std::string>>()) {
      EXPECT_TRUE(IsFoundAgain(number, content)) << "number " << number << " is lost";
    }
  }
}

TEST(StatementCases, ReadingsQuoteTheTextAtTheirOffset) {
  for (const YAML::Node& c : Cases()["cases"]) {
    const std::string text = c["text"].as<std::string>();
    for (const v1::StatementReading& r : Read(text).readings) {
      EXPECT_EQ(text.substr(r.offset(), r.text().size()), r.text()) << c["id"].as<std::string>();
    }
  }
}

// --- metrics -----------------------------------------------------------------

TEST(Statement, WordsThatShareTheirHeadCountEach) {
  EXPECT_THAT(
      Read("Compare compute and memory throughput, DRAM/L2 throughput.").metrics,
      ElementsAre("compute_throughput", "memory_throughput", "dram_throughput", "l2_throughput"));
  EXPECT_THAT(Read("Donner le throughput calcul et mémoire.").metrics,
              ElementsAre("compute_throughput", "memory_throughput"));
  EXPECT_THAT(Read("achieved and theoretical occupancy").metrics,
              ElementsAre("achieved_occupancy", "theoretical_occupancy"));
}

TEST(Statement, LongestWordsWin) {
  EXPECT_THAT(Read("exposed communication").metrics, ElementsAre("exposed_communication_time"));
  EXPECT_THAT(Read("raisons des stalls de warp").metrics, ElementsAre("warp_stalls"));
}

TEST(Statement, WordBordersHyphensSpellingAndCase) {
  EXPECT_THAT(Read("Tensor-core utilisation, GPU BUSY SHARE").metrics,
              ElementsAre("tensor_pipe_utilization", "gpu_busy_share"));
  EXPECT_THAT(Read("solution, powerful, isolate, mfux").metrics, IsEmpty());
  EXPECT_THAT(Read("gpu_busy_share and idle_share").metrics,
              ElementsAre("gpu_busy_share", "idle_share"));
}

TEST(Statement, UnitOfAThroughputIsNoWishOfItsOwn) {
  const StatementContent content = Read("Report the throughput in samples per second.");
  EXPECT_THAT(content.metrics, ElementsAre("throughput"));
  EXPECT_THAT(content.unit_metrics, ElementsAre("sample_throughput"));
  EXPECT_THAT(Read("Report tokens/sec.").metrics, ElementsAre("token_throughput"));
}

// --- numbers -----------------------------------------------------------------

double FlopsPerCall(absl::string_view text) {
  const auto flops = Read(text).flops_per_call;
  return flops ? flops->value : 0;
}

TEST(Statement, NumbersOfBothLanguages) {
  EXPECT_DOUBLE_EQ(FlopsPerCall("It does 1,247.5 GFLOP per call."), 1247.5e9);
  EXPECT_DOUBLE_EQ(FlopsPerCall("Il fait 1\u202f247,5 GFLOP par appel."), 1247.5e9);
  EXPECT_DOUBLE_EQ(FlopsPerCall("Il fait 1 247,5 GFLOP par appel."), 1247.5e9);
  EXPECT_DOUBLE_EQ(FlopsPerCall("It does 1.2\u00d710^12 FLOP per call."), 1.2e12);
  EXPECT_DOUBLE_EQ(FlopsPerCall("It does 6\u00b710\u00b9\u00b2 FLOP per call."), 6e12);
  EXPECT_DOUBLE_EQ(FlopsPerCall("Il fait 68,72 milliards de FLOP par appel."), 68.72e9);
  // A whole number can only be meant so.
  EXPECT_THAT(Read("Le GEMM avec M=4,096 est lent.").dimensions,
              UnorderedElementsAre(Pair("M", 4096)));
}

TEST(Statement, RatesAndPeaksAreNoFlopCount) {
  for (const char* text : {"The peak is 989 TFLOP/s.", "It peaks at 989.4 TFLOPS.",
                           "Une cr\u00eate de 989,4 TFLOP/s.", "989 TFLOP per second"}) {
    const StatementContent content = Read(text);
    EXPECT_FALSE(content.flops_per_call || content.flops_per_step) << text;
    EXPECT_EQ(content.readings.size(), 1u) << text << "\n" << Describe(content);
  }
}

TEST(Statement, FlopsBelongToACallOrAStep) {
  EXPECT_TRUE(Read("68.72 GFLOP/call").flops_per_call);
  EXPECT_TRUE(Read("68.72 GFLOPS per launch").flops_per_call);
  EXPECT_TRUE(Read("Each step performs 3 TFLOP.").flops_per_step);
  EXPECT_TRUE(Read("2.86 TFLOP are done in each step").flops_per_step);
  EXPECT_TRUE(Read("flops_per_step=1.2e15").flops_per_step);
  // Per token is neither.
  const StatementContent token = Read("It needs 14 GFLOP per token.");
  EXPECT_FALSE(token.flops_per_call || token.flops_per_step);
}

TEST(Statement, StepTimeIsOneWithoutProfilerOnly) {
  EXPECT_DOUBLE_EQ(Read("41 ms under nsys but only 24 ms per step without it.").step_time->value,
                   0.024);
  EXPECT_DOUBLE_EQ(Read("Le pas dure 24 ms hors profileur et 41 ms sous nsys.").step_time->value,
                   0.024);
  EXPECT_DOUBLE_EQ(Read("step_time=310ms").step_time->value, 0.31);
  EXPECT_FALSE(Read("A step takes 24 ms.").step_time);
  EXPECT_FALSE(Read("Under torch.profiler a step takes 24 ms.").step_time);
  EXPECT_FALSE(Read("The attention kernel takes 3 ms.").step_time);
}

TEST(Statement, NamedFigures) {
  const StatementContent content = Read(
      "A 7B-parameter transformer is trained on 64 GPUs with seq_len=4k, batch 128 and 2M "
      "tokens per step; the block is called 24 times per step.");
  EXPECT_EQ(content.parameters->value, 7e9);
  EXPECT_EQ(content.world_size->value, 64);
  EXPECT_EQ(content.sequence_length->value, 4096);
  EXPECT_EQ(content.batch_size->value, 128);
  EXPECT_EQ(content.calls_per_step->value, 24);
  EXPECT_THAT(content.dimensions, UnorderedElementsAre(Pair("tokens", 2'000'000)));
  EXPECT_EQ(content.operation, v1::OPERATION_KIND_TRANSFORMER_TRAINING);
  EXPECT_EQ(content.mode, v1::TRAINING_MODE_TRAINING);
}

TEST(Statement, NodesTimesGpusIsNotGuessed) {
  EXPECT_FALSE(Read("It runs on 2 nodes of 8 GPUs each.").world_size);
}

TEST(Statement, DimensionsInEveryForm) {
  const auto gemm =
      UnorderedElementsAre(Pair("B", 32), Pair("M", 512), Pair("N", 1024), Pair("K", 2048));
  for (const char* text : {"(B, M, N, K) = (32, 512, 1024, 2048)", "BxMxNxK = 32x512x1024x2048",
                           "B: 32, M: 512, N: 1024, K: 2048", "B 32 M 512 N 1024 K 2048",
                           "a 32x512x1024x2048 bmm", "B=32,M=512,N=1 024,K=2\u202f048"}) {
    EXPECT_THAT(Read(text).dimensions, gemm) << text;
  }
  EXPECT_THAT(Read("M, N, K = 4096").dimensions,
              UnorderedElementsAre(Pair("M", 4096), Pair("N", 4096), Pair("K", 4096)));
  EXPECT_THAT(
      Read("R=3 S=3 stride=1 padding=0").dimensions,
      UnorderedElementsAre(Pair("R", 3), Pair("S", 3), Pair("stride", 1), Pair("padding", 0)));
  EXPECT_THAT(Read("n_heads=32, head_dim=128").dimensions,
              UnorderedElementsAre(Pair("H", 32), Pair("D", 128)));
  EXPECT_THAT(Read("Version B 15 of the model").dimensions, IsEmpty());
}

TEST(Statement, NumberThatCannotStandWhereItDoesIsNotUnderstood) {
  const StatementContent content = Read("M=0, K=-4, batch size 3.5");
  ASSERT_EQ(content.not_understood.size(), 3u);
  EXPECT_TRUE(content.dimensions.empty());
  EXPECT_FALSE(content.batch_size);
}

TEST(Statement, TwoValuesOfOneNameAreBothKept) {
  const StatementContent content = Read("M=512 and then M=1024, in fp16 and bf16");
  ASSERT_EQ(content.twice.size(), 2u);
  EXPECT_EQ(content.twice[0].name, "M");
  EXPECT_EQ(content.twice[1].second, "bf16");
}

// --- words -------------------------------------------------------------------

TEST(Statement, AccumulatorsAndOutputsHaveTheirOwnDtype) {
  const StatementContent content = Read("bf16 with FP32 accumulation and fp16 outputs");
  EXPECT_EQ(content.dtype, v1::DTYPE_BF16);
  EXPECT_THAT(content.twice, IsEmpty());
}

TEST(Statement, AttentionCausalAndBackward) {
  const StatementContent content = Read("Causal flash attention, forward and backward, S=8192.");
  EXPECT_EQ(content.operation, v1::OPERATION_KIND_ATTENTION);
  EXPECT_TRUE(content.causal);
  EXPECT_TRUE(content.backward);
  EXPECT_FALSE(Read("Non-causal attention.").causal);
}

TEST(Statement, RegionsAndSkippedSteps) {
  EXPECT_EQ(RegionName(Read("Profile the NVTX range 'train_step' of main.py.").region),
            "nvtx:train_step");
  EXPECT_EQ(
      RegionName(Read("Les \u00e9tapes ProfilerStep#3 \u00e0 ProfilerStep#7 comptent.").region),
      "profiler_step");
  EXPECT_EQ(RegionName(Read("The NVTX range marks the region.").region), "");
  EXPECT_EQ(Read("Ignorer les 5 premiers pas.").region->skip_steps(), 5u);
}

TEST(Statement, KernelNamesAndPatterns) {
  EXPECT_EQ(Read("kernels `flash_fwd` and `flash_bwd`").kernel_pattern, "flash_fwd|flash_bwd");
  EXPECT_EQ(Read("Only the kernels whose name contains gemm count.").kernel_pattern, "gemm");
  EXPECT_EQ(Read("noyaux dont le nom commence par sm90_").kernel_pattern, "^sm90_");
  EXPECT_EQ(Read("The ampere_sgemm_128x64 kernel is slow.").kernel_pattern, "ampere_sgemm_128x64");
  EXPECT_EQ(Read("kernel \"f(int)\"").kernel_pattern, "f\\(int\\)");
  for (const char* text : {"The batched GEMM kernel is slow.", "The kernel does 3 TFLOP.",
                           "Le noyau calcule la trace.", "Quels noyaux dominent ?",
                           "The attention kernel too.", "kernel launches per step"}) {
    EXPECT_EQ(Read(text).kernel_pattern, "") << text;
  }
}

TEST(Statement, AnyBytesAreTaken) {
  EXPECT_THAT(Read("").readings, IsEmpty());
  for (const char* text : {"\xff\xfe", "=", "((((", "1e999 FLOP per call", "M=99999999999999999999",
                           "#\x01\x02#=3", "\"\"\"", "nvtx range \"", "1,2,,3..4"}) {
    Read(text);
  }
  EXPECT_FALSE(Read("1e999 FLOP per call").flops_per_call);
}

}  // namespace
}  // namespace solward::workflow
