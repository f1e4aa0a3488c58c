#include "coordinator/workflow/understand.h"

#include <yaml-cpp/yaml.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/embedded_config.h"
#include "common/metric.h"
#include "common/problem_context.h"
#include "common/status_matchers.h"
#include "coordinator/workflow/capture_abilities.h"

namespace solward::workflow {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

constexpr auto kBad = absl::StatusCode::kInvalidArgument;

const Knowledge& BuiltIn() {
  static const Knowledge knowledge{BuiltInCatalogue(), BuiltInGpuPeaks(),
                                   BuiltInClassificationParameters()};
  return knowledge;
}

// A request step by step: Request().Capture(...).Wants("mfu").Context("B", "32").
class Request {
 public:
  Request& Capture(v1::CaptureKind kind, const std::string& label = "c") {
    v1::ArtifactReference& capture =
        *request.mutable_workload()->mutable_captures()->add_captures();
    capture.set_id(absl::StrCat("artifact-", label));
    capture.set_label(label);
    capture.set_kind(kind);
    return *this;
  }
  Request& Counters() { return Capture(v1::CAPTURE_KIND_NCU_CSV_RAW, "counters.csv"); }
  Request& Timeline() { return Capture(v1::CAPTURE_KIND_NSYS_SQLITE, "timeline.sqlite"); }
  Request& Wants(const std::string& id) {
    request.add_desired_metrics()->set_id(id);
    return *this;
  }
  Request& Context(absl::string_view key, absl::string_view value) {
    EXPECT_THAT(ApplyContextValue(key, value, *request.mutable_context()), IsOk());
    return *this;
  }
  Request& Says(absl::string_view statement) {
    request.set_statement(std::string(statement));
    return *this;
  }

  v1::AnalysisRequest request;
};

v1::Answer Answer(const std::string& question, const std::string& name,
                  const std::string& value = "") {
  v1::Answer answer;
  answer.set_question_id(question);
  answer.set_name(name);
  answer.set_value(value);
  return answer;
}

v1::Understanding Understood(const Request& request, const std::vector<v1::Answer>& answers = {}) {
  absl::StatusOr<v1::Understanding> out = Understand(request.request, answers, BuiltIn());
  EXPECT_THAT(out, IsOk());
  return out.ok() ? *std::move(out) : v1::Understanding();
}

std::vector<std::string> QuestionIds(const v1::Understanding& understanding) {
  std::vector<std::string> ids;
  for (const v1::Question& question : understanding.questions()) ids.push_back(question.id());
  return ids;
}

std::vector<std::string> Wanted(const v1::Understanding& understanding) {
  std::vector<std::string> ids;
  for (const v1::DesiredMetric& metric : understanding.request().desired_metrics()) {
    ids.push_back(metric.id());
  }
  return ids;
}

// The first metric of this id, the one that the next stages use.
const v1::Metric* ContextMetric(const v1::Understanding& understanding, absl::string_view id) {
  for (const v1::Metric& metric : understanding.context_metrics()) {
    if (metric.id() == id) return &metric;
  }
  return nullptr;
}

const v1::Question& TheQuestion(const v1::Understanding& understanding) {
  static const v1::Question none;
  EXPECT_THAT(understanding.questions(), SizeIs(1));
  return understanding.questions().empty() ? none : understanding.questions(0);
}

constexpr char kGemm[] = "B=32 M=512 N=1024 K=2048";

// --- the good example --------------------------------------------------------

std::string GoodExample(const std::string& id) {
  const char* root = std::getenv("SOLWARD_SOURCE_DIR");
  EXPECT_NE(root, nullptr) << "SOLWARD_SOURCE_DIR is not set";
  if (root == nullptr) return "";
  const YAML::Node cases =
      YAML::LoadFile(absl::StrCat(root, "/tests/data/statement_cases.yaml"))["cases"];
  for (const YAML::Node& c : cases) {
    if (c["id"].as<std::string>() == id) return c["text"].as<std::string>();
  }
  ADD_FAILURE() << id << " is not in the list";
  return "";
}

class GoodExampleTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GoodExampleTest, AloneGivesEverything) {
  const v1::Understanding understood = Understood(Request().Says(GoodExample(GetParam())));
  EXPECT_THAT(QuestionIds(understood), IsEmpty());
  EXPECT_THAT(Wanted(understood),
              UnorderedElementsAre("sol", "compute_throughput", "memory_throughput",
                                   "dram_bandwidth", "tensor_pipe_utilization",
                                   "achieved_occupancy", "warp_stalls", "roofline", "mfu"));
  const v1::AnalysisRequest& request = understood.request();
  EXPECT_TRUE(request.region().cuda_profiler_api());
  EXPECT_EQ(request.workload().source_file().path(), "bmm_workload.py");
  EXPECT_EQ(request.context().dtype(), v1::DTYPE_FP16);
  EXPECT_EQ(request.context().operations(0).kind(), v1::OPERATION_KIND_BATCHED_GEMM);
  EXPECT_DOUBLE_EQ(request.context().flops_per_call().value(), 68.72e9);
  EXPECT_EQ(request.constraints().kernel_pattern(), "");
  const v1::Metric* flops = ContextMetric(understood, "flops_per_call");
  ASSERT_NE(flops, nullptr);
  EXPECT_EQ(flops->value(), 2.0 * 32 * 512 * 1024 * 2048);
  EXPECT_EQ(flops->provenance().derived().formula_id(), "gemm_flops");
}

TEST_P(GoodExampleTest, BesideACaptureTheCaptureIsTheWorkload) {
  const v1::Understanding understood =
      Understood(Request().Counters().Says(GoodExample(GetParam())));
  EXPECT_THAT(QuestionIds(understood), IsEmpty());
  EXPECT_TRUE(understood.request().workload().has_captures());
}

INSTANTIATE_TEST_SUITE_P(Languages, GoodExampleTest,
                         ::testing::Values("seed-good-en", "seed-good-fr"));

// --- refused requests --------------------------------------------------------

TEST(Understand, RefusesEveryFreeTextThatSaysHow) {
  Request request = Request().Counters().Says("Run NCU with --set=full.");
  request.request.set_notes("If ncu fails, use nsys.");
  request.request.mutable_workload()->set_description("Save the report in /tmp/out.");
  const absl::Status status = Understand(request.request, {}, BuiltIn()).status();
  EXPECT_THAT(status, StatusIs(kBad, HasSubstr("--set=full")));
  EXPECT_EQ(ErrorReason(status), "DELEGATION_NOT_OUTCOME_ONLY");
  std::vector<std::string> fields;
  for (const FieldViolation& violation : FieldViolations(status)) fields.push_back(violation.field);
  EXPECT_THAT(fields, UnorderedElementsAre("request.statement", "request.notes",
                                           "request.workload.description"));
}

TEST(Understand, NamesEveryBadFieldAtOnce) {
  Request request = Request().Counters();
  request.request.mutable_constraints()->set_kernel_pattern("gemm(");
  request.request.mutable_constraints()->add_devices(-1);
  request.request.mutable_context()->mutable_step_time()->set_value(-1);
  (*request.request.mutable_context()->add_operations()->mutable_dimensions())["M"] = 0;
  request.request.set_statement(std::string(16 * 1024 + 1, 'a'));
  request.request.set_notes(std::string(4 * 1024 + 1, 'a'));
  const absl::Status status = Understand(request.request, {}, BuiltIn()).status();
  EXPECT_THAT(status, StatusIs(kBad, HasSubstr("and 5 more")));
  EXPECT_EQ(ErrorReason(status), "REQUEST_INVALID");
  std::vector<std::string> fields;
  for (const FieldViolation& violation : FieldViolations(status)) fields.push_back(violation.field);
  EXPECT_THAT(fields, UnorderedElementsAre(
                          "request.statement", "request.notes", "request.context.step_time",
                          "request.context.operations[0].dimensions.M",
                          "request.constraints.kernel_pattern", "request.constraints.devices"));
}

TEST(Understand, TakesTheLargestTexts) {
  Request request = Request().Counters();
  request.request.set_statement(std::string(16 * 1024, ' '));
  request.request.set_notes(std::string(4 * 1024, 'a'));
  EXPECT_THAT(Understand(request.request, {}, BuiltIn()), IsOk());
}

TEST(Understand, RefusesAnEmptyCommandAndASnippetWithoutLanguage) {
  Request command, snippet;
  command.request.mutable_workload()->mutable_command();
  snippet.request.mutable_workload()->mutable_snippet()->set_text("x = 1");
  EXPECT_THAT(Understand(command.request, {}, BuiltIn()), StatusIs(kBad, HasSubstr("argv")));
  EXPECT_THAT(Understand(snippet.request, {}, BuiltIn()), StatusIs(kBad, HasSubstr("language")));
}

// --- what is wanted ----------------------------------------------------------

TEST(Understand, WithoutAWishTheCataloguesDefaultsAreWantedAndNothingIsAsked) {
  // MFU is among them; without FLOPs it becomes unmeasured, not a question.
  const v1::Understanding understood = Understood(Request().Timeline());
  EXPECT_THAT(Wanted(understood), UnorderedElementsAreArray(BuiltInCatalogue().default_metrics()));
  EXPECT_THAT(Wanted(understood), Contains("mfu"));
  EXPECT_THAT(QuestionIds(understood), IsEmpty());
}

TEST(Understand, StatementAddsToTheMetricsOfTheFields) {
  EXPECT_THAT(Wanted(Understood(Request().Counters().Wants("sol").Says("Report the occupancy."))),
              ElementsAre("sol", "achieved_occupancy"));
}

TEST(Understand, UnitOfAThroughputIsWantedBesideIt) {
  EXPECT_THAT(Wanted(Understood(Request()
                                    .Timeline()
                                    .Context("step_time", "24 ms")
                                    .Says("Report the throughput in tokens/sec."))),
              ElementsAre("throughput", "token_throughput"));
}

TEST(Understand, UnknownMetricIsAskedWithCloseOnes) {
  const Request request = Request().Counters().Wants("achieved_ocupancy");
  const v1::Understanding understood = Understood(request);
  const v1::Question& question = TheQuestion(understood);
  EXPECT_EQ(question.kind(), v1::QUESTION_KIND_UNKNOWN_METRIC);
  EXPECT_THAT(question.text_en(), HasSubstr("achieved_occupancy"));
  EXPECT_THAT(question.text_fr(), HasSubstr("achieved_occupancy"));
  EXPECT_THAT(question.choices(), Contains("metric=achieved_occupancy"));
  const std::string id = question.id();
  EXPECT_THAT(Wanted(Understood(request, {Answer(id, "metric", "achieved_occupancy")})),
              ElementsAre("achieved_occupancy"));
  EXPECT_THAT(Wanted(Understood(request, {Answer(id, "skip")})), Contains("bottleneck_class"));
  EXPECT_THAT(QuestionIds(Understood(request, {Answer(id, "metric", "ocupancy")})), SizeIs(1));
}

// --- workload ----------------------------------------------------------------

TEST(Understand, AsksForAWorkload) {
  const Request request = Request().Wants("sol");
  const v1::Understanding understood = Understood(request);
  EXPECT_EQ(TheQuestion(understood).kind(), v1::QUESTION_KIND_WORKLOAD_MISSING);
  const v1::Understanding answered =
      Understood(request, {Answer("workload_missing", "command", "python train.py --fp16")});
  EXPECT_THAT(QuestionIds(answered), IsEmpty());
  EXPECT_THAT(answered.request().workload().command().argv(),
              ElementsAre("python", "train.py", "--fp16"));
}

TEST(Understand, TheOneProgramOfTheStatementIsTheWorkload) {
  EXPECT_EQ(Understood(Request().Says("Is src/train.py host-bound?"))
                .request()
                .workload()
                .source_file()
                .path(),
            "src/train.py");
  // Of two it must be said which.
  const v1::Understanding understood = Understood(Request().Says("Does a.py wait more than b.py?"));
  EXPECT_THAT(TheQuestion(understood).choices(),
              ElementsAre("source_file=a.py", "source_file=b.py"));
}

// --- FLOPs -------------------------------------------------------------------

TEST(Understand, MfuWithoutFlopsAndDimensionsIsAQuestion) {
  for (const Request& request : {Request().Counters().Wants("mfu").Context("dtype", "fp16"),
                                 Request().Counters().Says("Report the MFU in FP16."),
                                 Request().Counters().Says("Donner le MFU en FP16.")}) {
    const v1::Understanding understood = Understood(request);
    const v1::Question& question = TheQuestion(understood);
    EXPECT_EQ(question.id(), "flops_missing");
    EXPECT_EQ(question.kind(), v1::QUESTION_KIND_FLOPS_MISSING);
    EXPECT_THAT(question.accepts(), Contains("flops_per_call"));
    EXPECT_THAT(question.accepts(), Contains("dimensions"));
    EXPECT_FALSE(question.text_fr().empty());
  }
}

TEST(Understand, FlopsMissingIsAnsweredByFlopsByDimensionsOrSkipped) {
  const Request request = Request().Counters().Wants("mfu").Context("dtype", "fp16");
  for (const v1::Answer& answer :
       {Answer("flops_missing", "flops_per_call", "68.72 GFLOP"),
        Answer("flops_missing", "flops_per_step", "2,5 TFLOP"),
        Answer("flops_missing", "dimensions", kGemm), Answer("flops_missing", "skip")}) {
    EXPECT_THAT(QuestionIds(Understood(request, {answer})), IsEmpty()) << answer.DebugString();
  }
  const v1::Understanding understood =
      Understood(request, {Answer("flops_missing", "dimensions", kGemm)});
  EXPECT_EQ(ContextMetric(understood, "flops_per_call")->value(), 68'719'476'736.0);
}

TEST(Understand, IncompleteDimensionsSayWhatIsMissing) {
  const Request request =
      Request().Counters().Wants("mfu").Context("dtype", "fp16").Context("operation", "gemm");
  const v1::Understanding understood =
      Understood(request, {Answer("flops_missing", "dimensions", "M=512 N=1024")});
  EXPECT_THAT(TheQuestion(understood).text_en(), HasSubstr("gemm still missing: K"));
  EXPECT_THAT(TheQuestion(understood).accepts(), Contains("K"));
}

TEST(Understand, BadAnswerIsAskedAgainWithItsError) {
  const Request request = Request().Counters().Wants("mfu").Context("dtype", "fp16");
  const v1::Answer bad = Answer("flops_missing", "flops_per_call", "989 TFLOP/s");
  const v1::Understanding again = Understood(request, {bad});
  EXPECT_THAT(TheQuestion(again).text_en(), HasSubstr("a rate is none"));
  EXPECT_THAT(TheQuestion(again).text_fr(), HasSubstr("989 TFLOP/s"));
  // A later good answer takes its place.
  EXPECT_THAT(QuestionIds(Understood(
                  request, {bad, Answer("flops_missing", "flops_per_call", "68.72 GFLOP")})),
              IsEmpty());
  EXPECT_THAT(
      TheQuestion(Understood(request, {Answer("flops_missing", "colour", "red")})).text_en(),
      HasSubstr("colour"));
}

TEST(Understand, AnswerToNoQuestionIsRefused) {
  const absl::Status status =
      Understand(Request().Counters().request, {Answer("colour", "red", "1")}, BuiltIn()).status();
  EXPECT_THAT(status, StatusIs(kBad, HasSubstr("answers[0].question_id")));
  EXPECT_EQ(ErrorReason(status), "QUESTION_UNKNOWN");
}

TEST(Understand, FlopsAndDimensionsThatDisagreeAreAQuestion) {
  const Request request = Request()
                              .Counters()
                              .Wants("mfu")
                              .Context("dtype", "fp16")
                              .Context("dimensions", kGemm)
                              .Context("flops_per_call", "70 GFLOP");
  const v1::Understanding understood = Understood(request);
  const v1::Question& question = TheQuestion(understood);
  EXPECT_EQ(question.kind(), v1::QUESTION_KIND_FLOPS_DISAGREE);
  EXPECT_THAT(question.choices(),
              ElementsAre("flops_per_call=70 GFLOP", "dimensions=B=32 K=2048 M=512 N=1024"));
  EXPECT_THAT(question.conflicting_values(), ElementsAre("70.00 GFLOP", "68.72 GFLOP"));

  const v1::Understanding flops =
      Understood(request, {Answer("flops_disagree", "flops_per_call", "70 GFLOP")});
  EXPECT_THAT(QuestionIds(flops), IsEmpty());
  EXPECT_DOUBLE_EQ(ContextMetric(flops, "flops_per_call")->value(), 70e9);
  // A choice may be given as it is written.
  const v1::Understanding dimensions =
      Understood(request, {Answer("flops_disagree", "", question.choices(1))});
  EXPECT_THAT(QuestionIds(dimensions), IsEmpty());
  EXPECT_EQ(ContextMetric(dimensions, "flops_per_call")->value(), 68'719'476'736.0);
  EXPECT_FALSE(dimensions.request().context().has_flops_per_call());
}

TEST(Understand, RoundingOfPrintedFlopsIsNoDisagreement) {
  for (const char* flops : {"68.72 GFLOP", "69.4 GFLOP", "68.1 GFLOP"}) {
    EXPECT_THAT(QuestionIds(Understood(Request()
                                           .Counters()
                                           .Wants("mfu")
                                           .Context("dtype", "fp16")
                                           .Context("dimensions", kGemm)
                                           .Context("flops_per_call", flops))),
                IsEmpty())
        << flops;
  }
}

// --- dtype -------------------------------------------------------------------

TEST(Understand, MfuWithoutDtypeIsAQuestion) {
  const Request request = Request().Counters().Wants("mfu").Context("dimensions", kGemm);
  const v1::Understanding understood = Understood(request);
  EXPECT_EQ(TheQuestion(understood).kind(), v1::QUESTION_KIND_DTYPE_MISSING);
  EXPECT_THAT(QuestionIds(Understood(request, {Answer("dtype_missing", "dtype", "fp16")})),
              IsEmpty());
}

TEST(Understand, DtypeWithoutPeakOnTheNamedGpuIsAQuestion) {
  const Request request = Request()
                              .Counters()
                              .Wants("mfu")
                              .Context("dimensions", kGemm)
                              .Context("dtype", "fp4")
                              .Context("gpu", "NVIDIA H200");
  const v1::Understanding understood = Understood(request);
  const v1::Question& question = TheQuestion(understood);
  EXPECT_EQ(question.kind(), v1::QUESTION_KIND_DTYPE_HAS_NO_PEAK);
  EXPECT_THAT(question.choices(), Contains("dtype=fp8"));
  EXPECT_THAT(question.choices(), ::testing::Not(Contains("dtype=fp4")));
  EXPECT_THAT(QuestionIds(Understood(request, {Answer("dtype_has_no_peak", "dtype", "fp8")})),
              IsEmpty());
}

// --- captures ----------------------------------------------------------------

TEST(Understand, AWishThatNoCaptureCanHoldIsAQuestion) {
  struct Row {
    Request request;
    const char* metric;
  };
  for (const Row& row :
       {Row{Request().Timeline().Wants("achieved_occupancy"), "achieved_occupancy"},
        Row{Request().Timeline().Wants("warp_stalls"), "warp_stalls"},
        Row{Request().Counters().Wants("gpu_busy_share"), "gpu_busy_share"},
        Row{Request().Timeline().Wants("throughput"), "throughput"},
        Row{Request().Timeline().Says("Report the latency."), "latency"},
        Row{Request().Counters().Timeline().Wants("power"), "power"}}) {
    const v1::Understanding understood = Understood(row.request);
    const v1::Question& question = TheQuestion(understood);
    const std::string id = absl::StrCat("capture_cannot_give_", row.metric);
    EXPECT_EQ(question.id(), id);
    EXPECT_EQ(question.kind(), v1::QUESTION_KIND_CAPTURE_CANNOT_GIVE_METRIC);
    EXPECT_THAT(question.choices(), Contains("skip"));
    EXPECT_THAT(QuestionIds(Understood(row.request, {Answer(id, "skip")})), IsEmpty());
  }
}

TEST(Understand, OneCaptureThatCanIsEnough) {
  EXPECT_THAT(QuestionIds(Understood(
                  Request().Timeline().Counters().Wants("achieved_occupancy").Wants("idle_share"))),
              IsEmpty());
  // Groups, and what the classification draws from anything.
  EXPECT_THAT(QuestionIds(Understood(Request().Timeline().Wants("bottleneck_class"))), IsEmpty());
  EXPECT_THAT(QuestionIds(Understood(Request().Capture(v1::CAPTURE_KIND_UNSPECIFIED).Wants("sol"))),
              IsEmpty());
}

TEST(Understand, StepTimeGivesThroughput) {
  const Request request = Request().Timeline().Wants("throughput");
  EXPECT_THAT(TheQuestion(Understood(request)).accepts(), Contains("step_time"));
  const v1::Understanding understood =
      Understood(request, {Answer("capture_cannot_give_throughput", "step_time", "24 ms")});
  EXPECT_THAT(QuestionIds(understood), IsEmpty());
  EXPECT_DOUBLE_EQ(ContextMetric(understood, "step_time")->value(), 24e6);
}

// --- statement against fields ------------------------------------------------

TEST(Understand, FieldsWinAndAConflictIsAQuestion) {
  const Request request = Request()
                              .Timeline()
                              .Wants("idle_share")
                              .Context("batch", "64")
                              .Says("Training with batch size 32 in bf16 on 8 GPUs.");
  const v1::Understanding understood = Understood(request);
  const v1::Question& question = TheQuestion(understood);
  EXPECT_EQ(question.kind(), v1::QUESTION_KIND_STATEMENT_CONFLICT);
  EXPECT_EQ(question.id(), "conflict_batch");
  EXPECT_THAT(question.choices(), ElementsAre("batch=64", "batch=32"));
  EXPECT_EQ(understood.request().context().batch_size().value(), 64);
  EXPECT_EQ(understood.request().context().world_size().value(), 8);
  EXPECT_EQ(understood.request().context().world_size().field(), "statement");
  EXPECT_EQ(understood.request().context().world_size().text(), "8 GPUs");
  EXPECT_EQ(understood.request().context().mode(), v1::TRAINING_MODE_TRAINING);

  const v1::Understanding answered = Understood(request, {Answer("conflict_batch", "batch", "32")});
  EXPECT_THAT(QuestionIds(answered), IsEmpty());
  EXPECT_EQ(answered.request().context().batch_size().value(), 32);
  EXPECT_EQ(Understood(request, {Answer("conflict_batch", "skip")})
                .request()
                .context()
                .batch_size()
                .value(),
            64);
}

TEST(Understand, SameFiguresAreNoConflict) {
  EXPECT_THAT(QuestionIds(Understood(Request()
                                         .Counters()
                                         .Wants("mfu")
                                         .Context("dimensions", kGemm)
                                         .Context("dtype", "fp16")
                                         .Context("flops_per_call", "68.7194 GFLOP")
                                         .Says(GoodExample("seed-good-fr")))),
              IsEmpty());
}

TEST(Understand, ConflictsOfRegionKernelAndDimension) {
  Request request =
      Request()
          .Counters()
          .Wants("sol")
          .Context("M", "256")
          .Says("Only the NVTX range \"forward\" and the kernel flash_fwd count; GEMM with M=512.");
  request.request.mutable_region()->set_nvtx_range("step");
  request.request.mutable_constraints()->set_kernel_pattern("softmax");
  const v1::Understanding understood = Understood(request);
  EXPECT_THAT(QuestionIds(understood),
              UnorderedElementsAre("conflict_M", "conflict_region", "conflict_kernel"));
  const v1::Understanding answered =
      Understood(request, {Answer("conflict_M", "M", "512"),
                           Answer("conflict_region", "region", "nvtx:forward"),
                           Answer("conflict_kernel", "kernel", "flash_fwd")});
  EXPECT_THAT(QuestionIds(answered), IsEmpty());
  EXPECT_EQ(answered.request().region().nvtx_range(), "forward");
  EXPECT_EQ(answered.request().constraints().kernel_pattern(), "flash_fwd");
  EXPECT_EQ(answered.request().context().operations(0).dimensions().at("M"), 512);
}

TEST(Understand, StatementThatContradictsItselfIsAQuestion) {
  const v1::Understanding understood =
      Understood(Request().Counters().Says("Is fp16 limited by memory, and bf16?"));
  EXPECT_EQ(TheQuestion(understood).id(), "conflict_dtype");
  EXPECT_THAT(TheQuestion(understood).choices(), ElementsAre("dtype=fp16", "dtype=bf16"));
}

TEST(Understand, NumberInAPlaceThatCannotHoldItIsAQuestion) {
  const Request request = Request().Timeline().Says("Idle share with a batch size of 3.5?");
  const v1::Understanding understood = Understood(request);
  EXPECT_EQ(TheQuestion(understood).kind(), v1::QUESTION_KIND_NUMBER_NOT_UNDERSTOOD);
  EXPECT_THAT(TheQuestion(understood).text_en(), HasSubstr("batch size of 3.5"));
  const v1::Understanding answered =
      Understood(request, {Answer(TheQuestion(understood).id(), "batch", "4")});
  EXPECT_THAT(QuestionIds(answered), IsEmpty());
  EXPECT_EQ(answered.request().context().batch_size().value(), 4);
}

// --- context metrics ---------------------------------------------------------

TEST(Understand, EveryContextMetricIsValidWithItsWords) {
  const v1::Understanding understood = Understood(
      Request().Timeline().Says("A step takes 24 ms without the profiler; report the idle share."));
  const v1::Metric* step = ContextMetric(understood, "step_time");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->provenance().given().field(), "statement");
  EXPECT_EQ(step->provenance().given().text(), "24 ms");
  MetricSet set;
  EXPECT_THAT(set.Merge(BuiltInCatalogue(), understood.context_metrics()), IsOk());
}

// --- the table of abilities --------------------------------------------------

TEST(CaptureAbilities, TheBuiltInTableIsValidAndDistinguishesEvidence) {
  const CaptureAbilities& abilities = BuiltInCaptureAbilities();
  EXPECT_TRUE(abilities.CanGive(v1::CAPTURE_KIND_NCU_REPORT, "sol"));
  EXPECT_FALSE(abilities.CanGive(v1::CAPTURE_KIND_TORCH_TRACE, "sol"));
  EXPECT_TRUE(abilities.CanGive(v1::CAPTURE_KIND_TORCH_TRACE, "idle_share"));
  EXPECT_FALSE(abilities.CanGive(v1::CAPTURE_KIND_NVIDIA_SMI_XML, "mfu"));
  EXPECT_TRUE(abilities.CanGive(v1::CAPTURE_KIND_UNSPECIFIED, "sol"));
  EXPECT_THAT(abilities.EvidenceFor("kernel_time"), UnorderedElementsAre("counters", "timeline"));
}

TEST(CaptureAbilities, UnknownNamesAreNamed) {
  const auto parse = [](const char* yaml) {
    return CaptureAbilities::Parse(yaml, BuiltInCatalogue()).status();
  };
  EXPECT_THAT(parse("evidence: [{id: x, captures: [NOPE], metrics: [sol]}]"),
              StatusIs(kBad, HasSubstr("NOPE")));
  EXPECT_THAT(parse("evidence: [{id: x, captures: [NCU_REPORT], metrics: [nope]}]"),
              StatusIs(kBad, HasSubstr("nope")));
}

}  // namespace
}  // namespace solward::workflow
