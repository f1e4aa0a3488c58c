#include "coordinator/workflow/recommendations.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/report/messages.h"

namespace solward::workflow {
namespace {

using Condition = RecommendationCondition;
using Effect = RecommendationEntry::Effect;

// More estimates than this are noise.
constexpr int kMostToolRules = 3;

enum class Answer { kYes, kNo, kUndecided };

class Recommender {
 public:
  Recommender(const RecommendationCatalogue& catalogue, const v1::FindingsSection& findings,
              ReportInput& input)
      : catalogue_(catalogue), findings_(findings), input_(input) {}

  absl::StatusOr<v1::RecommendationsSection> Make() {
    const v1::Classification& classification = input_.classification();
    if (!IsUndetermined(classification.primary())) {
      for (const RecommendationEntry& entry : catalogue_.entries()) {
        RETURN_IF_ERROR(Consider(entry));
      }
      AddToolRules();
      SortByEffect();
    }
    AddMissingEvidence();
    for (int i = 0; i < section_.recommendations_size(); ++i) {
      section_.mutable_recommendations(i)->set_priority(i + 1);
    }
    if (section_.recommendations().empty()) *section_.mutable_none_because() = WhyNone();
    return std::move(section_);
  }

 private:
  absl::Status Consider(const RecommendationEntry& entry);
  // The entry's class in the verdict for which it is offered; nullptr: none.
  const v1::RankedClass* OfferedFor(const RecommendationEntry& entry,
                                    const std::vector<std::string>& resting_on) const;
  Answer Decide(const Condition& condition, const std::string& kernel) const;
  Answer DecideAll(const std::vector<Condition>& conditions, const std::string& kernel) const;
  std::string KernelOf(v1::BottleneckClass limit) const;
  absl::StatusOr<const v1::Metric*> Bound(const RecommendationEntry& entry,
                                          const v1::RankedClass& ranked, const std::string& kernel);
  bool HasFinding(absl::string_view id) const;
  void AddToolRules();
  void AddMissingEvidence();
  void SortByEffect();
  v1::Statement WhyNone() const;
  double EffectOf(const v1::Recommendation& recommendation) const;

  const RecommendationCatalogue& catalogue_;
  const v1::FindingsSection& findings_;
  ReportInput& input_;
  v1::RecommendationsSection section_;
};

bool Recommender::HasFinding(absl::string_view id) const {
  return std::any_of(findings_.findings().begin(), findings_.findings().end(),
                     [&](const auto& reported) { return reported.finding().id() == id; });
}

// Classes of the verdict: the first, the second when within the margin, and
// any other whose recoverable share exceeds what differs from run to run. An
// entry that rests on a finding of its own is offered for any ranked class.
const v1::RankedClass* Recommender::OfferedFor(const RecommendationEntry& entry,
                                               const std::vector<std::string>& resting_on) const {
  const v1::Classification& classification = input_.classification();
  for (const v1::RankedClass& ranked : classification.ranking()) {
    if (std::find(entry.classes.begin(), entry.classes.end(), ranked.bottleneck_class()) ==
        entry.classes.end()) {
      continue;
    }
    const v1::Metric* recoverable = input_.Find(ranked.recoverable_key());
    const double value = recoverable == nullptr ? 0 : recoverable->value();
    const bool primary = ranked.bottleneck_class() == classification.primary();
    const bool own_finding = !resting_on.empty() && value > 0;
    if (primary || own_finding || value >= input_.knowledge().parameters.margin_percent) {
      return &ranked;
    }
  }
  return nullptr;
}

// The kernel of this limit with the largest share; limits are sorted so.
std::string Recommender::KernelOf(v1::BottleneckClass limit) const {
  for (const v1::KernelLimit& kernel : input_.classification().kernel_limits()) {
    if (kernel.limit() == limit) return kernel.kernel();
  }
  return "";
}

Answer Recommender::Decide(const Condition& condition, const std::string& kernel) const {
  if (!condition.finding.empty()) {
    const bool found = HasFinding(condition.finding);
    if (condition.is == Condition::Is::kAbsent) return found ? Answer::kNo : Answer::kYes;
    return found ? Answer::kYes : Answer::kUndecided;
  }
  const v1::Metric* metric =
      kernel.empty() ? nullptr : input_.FindOfKernel(condition.metric, kernel);
  if (metric == nullptr) metric = input_.FindAny(condition.metric);
  const bool present = metric != nullptr && metric->value() != 0;
  switch (condition.is) {
    case Condition::Is::kPresent:
      return present ? Answer::kYes : Answer::kNo;
    case Condition::Is::kAbsent:
      return present ? Answer::kNo : Answer::kYes;
    case Condition::Is::kAbove:
      if (metric == nullptr) return Answer::kUndecided;
      return metric->value() > condition.value ? Answer::kYes : Answer::kNo;
    case Condition::Is::kBelow:
      if (metric == nullptr) return Answer::kUndecided;
      return metric->value() < condition.value ? Answer::kYes : Answer::kNo;
  }
  return Answer::kUndecided;
}

Answer Recommender::DecideAll(const std::vector<Condition>& conditions,
                              const std::string& kernel) const {
  Answer all = Answer::kYes;
  for (const Condition& condition : conditions) {
    const Answer one = Decide(condition, kernel);
    if (one == Answer::kNo) return Answer::kNo;
    if (one == Answer::kUndecided) all = Answer::kUndecided;
  }
  return all;
}

absl::StatusOr<const v1::Metric*> Recommender::Bound(const RecommendationEntry& entry,
                                                     const v1::RankedClass& ranked,
                                                     const std::string& kernel) {
  switch (entry.effect) {
    case Effect::kNone:
      return nullptr;
    case Effect::kClass:
      return input_.Find(ranked.recoverable_key());
    case Effect::kShare:
      return input_.Find(ranked.share_key());
    case Effect::kClock: {
      const v1::Metric* share = input_.Find(ranked.share_key());
      const v1::Metric* clock = input_.FindOfKernel("clock_share", kernel);
      if (share == nullptr || clock == nullptr) return nullptr;
      return input_.Derive("recoverable_kernel_time", share->scope(),
                           {{"share", share}, {"utilization", clock}});
    }
  }
  return nullptr;
}

absl::Status Recommender::Consider(const RecommendationEntry& entry) {
  std::vector<std::string> resting_on;
  for (const std::string& id : entry.any_finding) {
    if (HasFinding(id)) resting_on.push_back(id);
  }
  if (!entry.any_finding.empty() && resting_on.empty()) return absl::OkStatus();
  const v1::RankedClass* ranked = OfferedFor(entry, resting_on);
  if (ranked == nullptr) return absl::OkStatus();
  const std::string kernel = entry.kernel ? KernelOf(ranked->bottleneck_class()) : "";
  if (entry.kernel && kernel.empty()) return absl::OkStatus();
  if (DecideAll(entry.when, kernel) != Answer::kYes) return absl::OkStatus();
  const Answer ready = DecideAll(entry.precondition, kernel);
  if (ready == Answer::kNo) return absl::OkStatus();

  v1::Recommendation recommendation;
  recommendation.set_id(entry.id);
  recommendation.set_bottleneck_class(ranked->bottleneck_class());
  recommendation.set_is_check(entry.always_check || ready == Answer::kUndecided);
  const std::string own = absl::StrCat("bottleneck_", ClassWord(ranked->bottleneck_class()));
  if (HasFinding(own)) recommendation.add_finding_ids(own);
  if (entry.kernel && HasFinding("kernel_limit")) recommendation.add_finding_ids("kernel_limit");
  for (const std::string& id : resting_on) recommendation.add_finding_ids(id);
  if (recommendation.finding_ids().empty()) return absl::OkStatus();
  const std::string message = absl::StrCat("recommendation.", entry.id);
  Sentence action(absl::StrCat(message, recommendation.is_check() ? ".check" : ".action"));
  if (entry.kernel) action.Name("kernel", kernel);
  *recommendation.mutable_action() = action.Done();
  *recommendation.mutable_verify() = Sentence(absl::StrCat(message, ".verify")).Done();
  ASSIGN_OR_RETURN(const v1::Metric* bound, Bound(entry, *ranked, kernel));
  if (bound != nullptr) {
    recommendation.mutable_effect()->set_metric_key(bound->key());
    recommendation.mutable_effect()->set_basis(v1::EFFECT_BASIS_MEASURED_SHARE);
  }
  *section_.add_recommendations() = std::move(recommendation);
  return absl::OkStatus();
}

// A rule of the tool itself that estimates a speed-up for a kernel whose limit
// is in the verdict.
void Recommender::AddToolRules() {
  std::vector<const v1::Finding*> rules;
  for (const v1::ReportedFinding& reported : findings_.findings()) {
    const v1::Finding& finding = reported.finding();
    if (finding.id() != "tool_rule" || finding.detail().empty()) continue;
    if (finding.metric_keys().count("estimate") > 0) rules.push_back(&finding);
  }
  auto estimate = [&](const v1::Finding* rule) {
    const v1::Metric* metric = input_.Find(rule->metric_keys().at("estimate"));
    return metric == nullptr ? 0 : metric->value();
  };
  std::stable_sort(rules.begin(), rules.end(), [&](const v1::Finding* a, const v1::Finding* b) {
    return estimate(a) > estimate(b);
  });
  int added = 0;
  for (const v1::Finding* rule : rules) {
    v1::BottleneckClass limit = v1::BOTTLENECK_CLASS_UNSPECIFIED;
    for (const v1::KernelLimit& kernel : input_.classification().kernel_limits()) {
      if (kernel.kernel() == rule->location().kernel()) limit = kernel.limit();
    }
    if (IsUndetermined(limit) || added++ == kMostToolRules) continue;
    v1::Recommendation* recommendation = section_.add_recommendations();
    recommendation->set_id("tool_rule");
    recommendation->set_bottleneck_class(limit);
    recommendation->add_finding_ids("tool_rule");
    *recommendation->mutable_action() = Sentence("recommendation.tool_rule")
                                            .Name("kernel", rule->location().kernel())
                                            .Quote("rule", rule->detail())
                                            .Done();
    *recommendation->mutable_verify() = Sentence("recommendation.tool_rule_verify").Done();
    recommendation->mutable_effect()->set_metric_key(rule->metric_keys().at("estimate"));
    recommendation->mutable_effect()->set_basis(v1::EFFECT_BASIS_TOOL_ESTIMATE);
  }
}

double Recommender::EffectOf(const v1::Recommendation& recommendation) const {
  const v1::Metric* metric = input_.Find(recommendation.effect().metric_key());
  return metric == nullptr ? -1 : metric->value();
}

// The verdict's class first, then the larger bound, then the catalogue's order;
// the tool's estimate is of one kernel, so it comes after bounds of the whole.
void Recommender::SortByEffect() {
  auto& all = *section_.mutable_recommendations();
  std::vector<v1::Recommendation> sorted(std::make_move_iterator(all.begin()),
                                         std::make_move_iterator(all.end()));
  auto rank = [&](const v1::Recommendation& r) {
    const bool other = r.bottleneck_class() != input_.classification().primary();
    const bool tool = r.effect().basis() == v1::EFFECT_BASIS_TOOL_ESTIMATE;
    return std::tuple(other, tool, -EffectOf(r));
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  all.Clear();
  for (v1::Recommendation& recommendation : sorted) {
    *section_.add_recommendations() = std::move(recommendation);
  }
}

// The fuller sentence where its words are at hand.
v1::Statement SayMissing(const v1::MissingEvidence& missing) {
  v1::Statement why = missing.why();
  const std::string& id = why.message_id();
  if (id == "missing.step_time" && why.arguments().count("flip") > 0) {
    why.set_message_id("missing.step_time_flip");
  } else if (id == "missing.kernel_counters" && !missing.kernels().empty()) {
    why.set_message_id("missing.kernel_counters_first");
    (*why.mutable_arguments())["kernel"].set_name(missing.kernels(0));
  }
  return why;
}

// What would settle the verdict, as a check.
void Recommender::AddMissingEvidence() {
  const v1::Classification& classification = input_.classification();
  for (const v1::MissingEvidence& missing : classification.missing()) {
    if (!missing.has_why()) continue;
    v1::Recommendation* recommendation = section_.add_recommendations();
    recommendation->set_id("measure");
    recommendation->set_bottleneck_class(classification.primary());
    recommendation->set_is_check(true);
    const std::string own = absl::StrCat("bottleneck_", ClassWord(classification.primary()));
    if (HasFinding(own)) recommendation->add_finding_ids(own);
    *recommendation->mutable_action() = SayMissing(missing);
  }
}

v1::Statement Recommender::WhyNone() const {
  const v1::Classification& classification = input_.classification();
  if (IsUndetermined(classification.primary())) return Sentence("none.undetermined").Done();
  for (const v1::RankedClass& ranked : classification.ranking()) {
    const v1::Metric* recoverable = input_.Find(ranked.recoverable_key());
    if (ranked.bottleneck_class() != classification.primary() || recoverable == nullptr) continue;
    if (recoverable->value() < input_.knowledge().parameters.near_roof_percent) {
      return Sentence("none.near_speed_of_light").Metric("recoverable", recoverable->key()).Done();
    }
  }
  return Sentence("none.no_entry").Done();
}

}  // namespace

absl::StatusOr<v1::RecommendationsSection> MakeRecommendations(
    const RecommendationCatalogue& catalogue, const v1::FindingsSection& findings,
    ReportInput& input) {
  return Recommender(catalogue, findings, input).Make();
}

}  // namespace solward::workflow
