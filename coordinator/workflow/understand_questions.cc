#include "coordinator/workflow/understand_questions.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/gpu_peaks.h"
#include "common/problem_context.h"
#include "common/text.h"
#include "common/units.h"
#include "coordinator/workflow/capture_abilities.h"
#include "coordinator/workflow/flops.h"

namespace solward::workflow::internal {
namespace {

// "a, b or c".
std::string Any(const std::vector<std::string>& names, const char* last) {
  if (names.size() < 2) return absl::StrJoin(names, "");
  return absl::StrCat(absl::StrJoin(names.begin(), names.end() - 1, ", "), " ", last, " ",
                      names.back());
}

std::string Flops(double value, Language language) {
  return FormatQuantity(value, "{FLOP}", true, 2, language);
}

class Asker {
 public:
  explicit Asker(const QuestionInput& input)
      : in_(input), context_(input.request.context()), catalogue_(input.knowledge.catalogue) {}

  std::vector<v1::Question> Ask() {
    AskWorkload();
    AskConflicts();
    AskNumbers();
    AskUnknownMetrics();
    AskFlops();
    AskDisagreement();
    AskDtype();
    AskCaptures();
    return std::move(questions_);
  }

 private:
  // The question, or nullptr when it is settled. With the error of a bad answer.
  v1::Question* Add(const std::string& id, v1::QuestionKind kind, const std::string& english,
                    const std::string& french, const std::vector<std::string>& accepts,
                    const std::vector<std::string>& choices = {}) {
    if (in_.answered.settled.count(id) > 0) return nullptr;
    v1::Question question;
    question.set_id(id);
    question.set_kind(kind);
    question.set_text_en(english);
    question.set_text_fr(french);
    const auto error = in_.answered.errors.find(id);
    if (error != in_.answered.errors.end()) {
      question.set_text_en(
          absl::StrCat(english, " The last answer could not be used: ", error->second, "."));
      question.set_text_fr(
          absl::StrCat(french, " La dernière réponse n'a pas pu servir : ", error->second, "."));
    }
    for (const std::string& name : accepts) question.add_accepts(name);
    for (const std::string& choice : choices) question.add_choices(choice);
    questions_.push_back(std::move(question));
    return &questions_.back();
  }

  // The client named the metric, itself or by a group.
  bool Wants(absl::string_view id) const {
    if (!in_.metrics_named) return false;
    for (const v1::DesiredMetric& desired : in_.request.desired_metrics()) {
      for (const std::string& expanded : catalogue_.Expand(desired.id())) {
        if (expanded == id) return true;
      }
    }
    return false;
  }

  bool Skipped(const std::string& id) const { return in_.answered.skipped.count(id) > 0; }

  void AskWorkload() {
    const v1::Workload& workload = in_.request.workload();
    const bool none = workload.what_case() == v1::Workload::WHAT_NOT_SET ||
                      (workload.has_captures() && workload.captures().captures().empty());
    if (!none) return;
    std::vector<std::string> choices;
    for (const std::string& file : in_.statement.files) {
      choices.push_back(absl::StrCat("source_file=", file));
    }
    Add("workload_missing", v1::QUESTION_KIND_WORKLOAD_MISSING,
        "What is to be analysed? Give a recorded capture, a source file or a command.",
        "Que faut-il analyser ? Donner une capture enregistrée, un fichier source ou une commande.",
        {"source_file", "command"}, choices);
  }

  void AskConflicts() {
    for (const Conflict& conflict : in_.conflicts) {
      std::vector<std::string> choices;
      for (const std::string& value : conflict.values) {
        choices.push_back(absl::StrCat(conflict.name, "=", value));
      }
      const std::string values_en = absl::StrCat(conflict.values[0], " and ", conflict.values[1]);
      const std::string values_fr = absl::StrCat(conflict.values[0], " et ", conflict.values[1]);
      v1::Question* question =
          Add(absl::StrCat("conflict_", conflict.name), v1::QUESTION_KIND_STATEMENT_CONFLICT,
              conflict.within_statement
                  ? absl::StrCat("The statement says two things about ", conflict.name, ": ",
                                 values_en, ". Which holds?")
                  : absl::StrCat("The request's fields and the statement differ about ",
                                 conflict.name, ": ", values_en, ". Which holds?"),
              conflict.within_statement
                  ? absl::StrCat("L'énoncé dit deux choses sur ", conflict.name, " : ", values_fr,
                                 ". Laquelle vaut ?")
                  : absl::StrCat("Les champs de la requête et l'énoncé diffèrent sur ",
                                 conflict.name, " : ", values_fr, ". Lequel vaut ?"),
              {conflict.name, "skip"}, choices);
      if (question == nullptr) continue;
      for (const std::string& value : conflict.values) question->add_conflicting_values(value);
    }
  }

  void AskNumbers() {
    for (const NotUnderstood& number : in_.statement.not_understood) {
      Add(absl::StrCat("number_", number.name), v1::QUESTION_KIND_NUMBER_NOT_UNDERSTOOD,
          absl::StrCat("\"", number.text, "\" in the statement: expected ", number.expected_en,
                       " for ", number.name, ". What is meant?"),
          absl::StrCat("« ", number.text, " » dans l'énoncé : attendu ", number.expected_fr,
                       " pour ", number.name, ". Que faut-il comprendre ?"),
          {AnswerName(number.name), "skip"}, {"skip"});
    }
  }

  static std::string AnswerName(const std::string& name) {
    if (name == "batch_size") return "batch";
    if (name == "sequence_length") return "sequence";
    return name;
  }

  std::vector<std::string> AllMetricNames() const {
    std::vector<std::string> names;
    for (const MetricDefinition& metric : catalogue_.metrics()) names.push_back(metric.id);
    for (const MetricGroup& group : catalogue_.groups()) names.push_back(group.id);
    return names;
  }

  void AskUnknownMetrics() {
    for (const v1::DesiredMetric& desired : in_.request.desired_metrics()) {
      if (catalogue_.Find(desired.id()) != nullptr ||
          catalogue_.FindGroup(desired.id()) != nullptr) {
        continue;
      }
      const std::string shown = Truncate(CleanUtf8(desired.id()), 80);
      std::vector<std::string> close = CloseNames(desired.id(), AllMetricNames());
      const std::string maybe_en =
          close.empty() ? "" : absl::StrCat(" Did you mean ", Any(close, "or"), "?");
      const std::string maybe_fr =
          close.empty() ? "" : absl::StrCat(" Est-ce ", Any(close, "ou"), " ?");
      std::vector<std::string> choices;
      for (const std::string& id : close) choices.push_back(absl::StrCat("metric=", id));
      choices.push_back("skip");
      Add(UnknownMetricQuestion(desired.id()), v1::QUESTION_KIND_UNKNOWN_METRIC,
          absl::StrCat("\"", shown, "\" is no metric of the catalogue.", maybe_en),
          absl::StrCat("« ", shown, " » n'est pas une métrique du catalogue.", maybe_fr),
          {"metric", "skip"}, choices);
    }
  }

  bool KnowsFlops() const {
    return context_.has_flops_per_call() || context_.has_flops_per_step() ||
           FlopsFromDimensions(context_, catalogue_).has_value();
  }

  void AskFlops() {
    if (!Wants("mfu") || KnowsFlops()) return;
    std::string detail_en, detail_fr;
    std::vector<std::string> accepts = {"flops_per_call", "flops_per_step", "dimensions"};
    if (!context_.operations().empty()) {
      const v1::Operation& operation = context_.operations(0);
      const FlopsRecipe recipe = RecipeOf(operation, context_);
      if (!recipe.missing.empty()) {
        const std::string kind(OperationKindName(KindOf(operation)));
        detail_en = absl::StrCat(" Of the ", kind,
                                 " still missing: ", absl::StrJoin(recipe.missing, ", "), ".");
        detail_fr = absl::StrCat(" Pour ", kind,
                                 " il manque encore : ", absl::StrJoin(recipe.missing, ", "), ".");
        accepts.insert(accepts.end(), recipe.missing.begin(), recipe.missing.end());
      }
    }
    accepts.push_back("skip");
    Add("flops_missing", v1::QUESTION_KIND_FLOPS_MISSING,
        absl::StrCat("The MFU needs the model's FLOPs: how many per call or per step, or which "
                     "dimensions (\"B=32 M=512 N=1024 K=2048\")?",
                     detail_en),
        absl::StrCat("Le MFU demande les FLOP du modèle : combien par appel ou par pas, ou quelles "
                     "dimensions (« B=32 M=512 N=1024 K=2048 ») ?",
                     detail_fr),
        accepts, {"skip"});
  }

  void AskDisagreement() {
    const std::optional<ComputedFlops> computed = FlopsFromDimensions(context_, catalogue_);
    if (!computed) return;
    const bool has =
        computed->per_step ? context_.has_flops_per_step() : context_.has_flops_per_call();
    if (!has) return;
    const v1::GivenNumber& given =
        computed->per_step ? context_.flops_per_step() : context_.flops_per_call();
    const double percent = 100 * std::abs(given.value() - computed->flops) /
                           std::max(std::abs(given.value()), computed->flops);
    if (percent <= in_.knowledge.parameters.flops_disagreement_percent) return;
    const std::string name = computed->per_step ? "flops_per_step" : "flops_per_call";
    const std::string dimensions = DimensionsText();
    const std::string given_text =
        absl::StrCat(name, "=", absl::StrCat(given.value() * 1e-9), " GFLOP");
    v1::Question* question =
        Add("flops_disagree", v1::QUESTION_KIND_FLOPS_DISAGREE,
            absl::StrCat("The given FLOPs and the dimensions disagree: ",
                         Flops(given.value(), Language::kEnglish), " against ",
                         Flops(computed->flops, Language::kEnglish), " of ", dimensions,
                         ". Which holds?"),
            absl::StrCat("Les FLOP donnés et les dimensions se contredisent : ",
                         Flops(given.value(), Language::kFrench), " contre ",
                         Flops(computed->flops, Language::kFrench), " pour ", dimensions,
                         ". Lesquels valent ?"),
            {name, "dimensions", "skip"}, {given_text, absl::StrCat("dimensions=", dimensions)});
    if (question == nullptr) return;
    question->add_conflicting_values(Flops(given.value(), Language::kEnglish));
    question->add_conflicting_values(Flops(computed->flops, Language::kEnglish));
  }

  std::string DimensionsText() const {
    std::map<std::string, int64_t> sorted(context_.operations(0).dimensions().begin(),
                                          context_.operations(0).dimensions().end());
    std::vector<std::string> parts;
    for (const auto& [name, value] : sorted) parts.push_back(absl::StrCat(name, "=", value));
    return absl::StrJoin(parts, " ");
  }

  v1::Dtype TheDtype() const {
    if (context_.dtype() != v1::DTYPE_UNSPECIFIED) return context_.dtype();
    for (const v1::Operation& operation : context_.operations()) {
      if (operation.dtype() != v1::DTYPE_UNSPECIFIED) return operation.dtype();
    }
    return v1::DTYPE_UNSPECIFIED;
  }

  // Row of the peak table by the very name or alias; nullptr when none is.
  const GpuPeak* NamedGpu() const {
    const auto same = [&](const std::string& name) {
      return absl::EqualsIgnoreCase(name, absl::StripAsciiWhitespace(context_.gpu_name()));
    };
    for (const GpuPeak& row : in_.knowledge.peaks.rows()) {
      if (same(row.name) || std::any_of(row.aliases.begin(), row.aliases.end(), same)) return &row;
    }
    return nullptr;
  }

  void AskDtype() {
    // Without FLOPs there is no MFU that a dtype could help.
    if (Skipped("flops_missing") || !(Wants("mfu") || KnowsFlops())) return;
    const std::vector<std::string> dtypes = {"fp64", "fp32", "tf32", "fp16",
                                             "bf16", "fp8",  "fp4",  "int8"};
    std::vector<std::string> choices;
    const v1::Dtype dtype = TheDtype();
    if (dtype == v1::DTYPE_UNSPECIFIED) {
      if (!Wants("mfu")) return;
      for (const std::string& name : dtypes) choices.push_back(absl::StrCat("dtype=", name));
      choices.push_back("skip");
      Add("dtype_missing", v1::QUESTION_KIND_DTYPE_MISSING,
          "The MFU is relative to the dense peak of a dtype: in which dtype does it compute?",
          "Le MFU se rapporte à la crête dense d'un dtype : dans quel dtype se fait le calcul ?",
          {"dtype", "skip"}, choices);
      return;
    }
    const GpuPeak* gpu = context_.gpu_name().empty() ? nullptr : NamedGpu();
    if (gpu == nullptr || gpu->PeakOf(dtype).has_value()) return;
    for (const std::string& name : dtypes) {
      if (gpu->PeakOf(ParseDtype(name)).has_value())
        choices.push_back(absl::StrCat("dtype=", name));
    }
    choices.push_back("skip");
    Add("dtype_has_no_peak", v1::QUESTION_KIND_DTYPE_HAS_NO_PEAK,
        absl::StrCat("No dense peak of ", DtypeName(dtype), " is known for ", gpu->name,
                     ". Against which dtype's peak is the MFU wanted?"),
        absl::StrCat("Aucune crête dense ", DtypeName(dtype), " n'est connue pour ", gpu->name,
                     ". Contre la crête de quel dtype le MFU est-il voulu ?"),
        {"dtype", "gpu", "skip"}, choices);
  }

  // With the step's time and its FLOPs or sizes some metrics need no capture.
  bool FollowsFromContext(absl::string_view id) const {
    if (!context_.has_step_time()) return false;
    return id == "throughput" || id == "latency" || id == "step_time" ||
           id == "sample_throughput" || id == "token_throughput" ||
           (id == "mfu" && (context_.has_flops_per_step() || context_.has_calls_per_step()));
  }

  bool AnyCaptureGives(absl::string_view id) const {
    const auto& captures = in_.request.workload().captures().captures();
    return std::any_of(captures.begin(), captures.end(), [&](const v1::ArtifactReference& c) {
      return BuiltInCaptureAbilities().CanGive(c.kind(), id);
    });
  }

  void AskCaptures() {
    const v1::Workload& workload = in_.request.workload();
    if (!in_.metrics_named || !workload.has_captures() || workload.captures().captures().empty()) {
      return;
    }
    for (const v1::DesiredMetric& desired : in_.request.desired_metrics()) {
      const std::vector<std::string> ids = catalogue_.Expand(desired.id());
      const bool given = ids.empty() || std::any_of(ids.begin(), ids.end(), [&](const auto& id) {
                           return AnyCaptureGives(id) || FollowsFromContext(id);
                         });
      if (!given) AskCapture(desired.id(), ids);
    }
  }

  void AskCapture(const std::string& wanted, const std::vector<std::string>& ids) {
    std::vector<std::string> labels, evidence;
    for (const v1::ArtifactReference& c : in_.request.workload().captures().captures()) {
      labels.push_back(c.label().empty() ? c.id() : c.label());
    }
    for (const std::string& id : ids) {
      for (const std::string& kind : BuiltInCaptureAbilities().EvidenceFor(id)) {
        if (std::find(evidence.begin(), evidence.end(), kind) == evidence.end()) {
          evidence.push_back(kind);
        }
      }
    }
    const bool by_step_time =
        std::find(evidence.begin(), evidence.end(), "unprofiled_run") != evidence.end();
    std::vector<std::string> accepts = {"skip"};
    if (by_step_time) accepts.insert(accepts.begin(), "step_time");
    const std::string captures = Truncate(absl::StrJoin(labels, ", "), 300);
    Add(absl::StrCat("capture_cannot_give_", wanted), v1::QUESTION_KIND_CAPTURE_CANNOT_GIVE_METRIC,
        absl::StrCat(wanted, " cannot come from ", captures, ": it needs ", EvidenceEn(evidence),
                     by_step_time ? ". Give the step time without profiler, or go on without?"
                                  : ". Go on without it?"),
        absl::StrCat(wanted, " ne peut pas venir de ", captures, " : il faut ",
                     EvidenceFr(evidence),
                     by_step_time ? ". Donner la durée d'un pas sans profileur, ou s'en passer ?"
                                  : ". S'en passer ?"),
        accepts, {"skip"});
  }

  static std::string EvidenceEn(const std::vector<std::string>& kinds) {
    static const std::map<std::string, std::string> names = {
        {"counters", "a capture with hardware counters"},
        {"timeline", "a timeline"},
        {"device_samples", "samples of the device"},
        {"unprofiled_run", "a run without profiler"}};
    return Named(kinds, names, "or");
  }

  static std::string EvidenceFr(const std::vector<std::string>& kinds) {
    static const std::map<std::string, std::string> names = {
        {"counters", "une capture avec compteurs matériels"},
        {"timeline", "une chronologie"},
        {"device_samples", "des échantillons du GPU"},
        {"unprofiled_run", "une exécution sans profileur"}};
    return Named(kinds, names, "ou");
  }

  static std::string Named(const std::vector<std::string>& kinds,
                           const std::map<std::string, std::string>& names, const char* last) {
    std::vector<std::string> out;
    for (const std::string& kind : kinds) {
      const auto found = names.find(kind);
      out.push_back(found == names.end() ? kind : found->second);
    }
    return Any(out, last);
  }

  const QuestionInput& in_;
  const v1::ProblemContext& context_;
  const MetricCatalogue& catalogue_;
  std::vector<v1::Question> questions_;
};

}  // namespace

std::string UnknownMetricQuestion(const std::string& id) {
  std::string name = "unknown_metric_";
  for (const char c : id.substr(0, 64)) name += absl::ascii_isalnum(c) ? c : '_';
  return name;
}

std::vector<v1::Question> OpenQuestions(const QuestionInput& input) { return Asker(input).Ask(); }

}  // namespace solward::workflow::internal
